// Numbers as people write them: exact decimals, because 0.1 + 0.2 is not 0.3.

/** A number without sign and exponent: `1e-7` as `0.0000001`. */
export function writtenOut(number) {
  const [mantissa, exponent = "0"] = String(Math.abs(number)).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (point <= 0) return `0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length ? digits.padEnd(point, "0") : `${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** `places` decimals of what `writtenOut` gave, rounded half up. */
export function rounded(text, places) {
  const [whole, fraction = ""] = text.split(".");
  if (fraction.length <= places) return `${whole}.${fraction.padEnd(places, "0")}`;
  const up = fraction[places] >= "5" ? 1n : 0n;
  const digits = String(BigInt(whole + fraction.slice(0, places)) + up).padStart(places + 1, "0");
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** As in HTML: `start` plus a whole multiple of `step`. */
export function isOnStep(value, start, step) {
  const places = Math.max(...[value, start, step].map((number) => (writtenOut(number).split(".")[1] ?? "").length));
  const scaled = (number) => {
    const [whole, fraction = ""] = writtenOut(number).split(".");
    const magnitude = BigInt(whole + fraction.padEnd(places, "0"));
    return number < 0 ? -magnitude : magnitude;
  };
  return (scaled(value) - scaled(start)) % scaled(step) === 0n;
}
