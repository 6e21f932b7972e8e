// Exact decimal numbers, as whole numbers of the smallest part: 0.1 + 0.2 is 0.3. The server reckons in the same way
// (contracts/fields/formulas/numbers.py). What cannot be computed throws NoValue.
const PLACES = 20;
export const ONE = 10n ** BigInt(PLACES);
const LIMIT = ONE * ONE;

export class NoValue extends Error {}

/** The number that a stored value is, as people read it. */
export function ofValue(value) {
  const [mantissa, exponent = "0"] = String(Math.abs(value)).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const shift = PLACES + Number(exponent) - fraction.length;
  if (!Number.isFinite(value) || Number(exponent) + whole.length > PLACES) throw new NoValue();
  const digits = BigInt(whole + fraction);
  const size = shift >= 0 ? digits * 10n ** BigInt(shift) : dividedHalfUp(digits, 10n ** BigInt(-shift));
  return value < 0 ? -size : size;
}

/** The number that a text writes, with a point; null when it writes none. */
export function ofText(text) {
  const match = /^([+-]?)([0-9]{1,20})(?:\.([0-9]{1,40}))?$/.exec(text);
  if (!match) return null;
  const [, sign, whole, fraction = ""] = match;
  const size = BigInt(whole) * ONE + dividedHalfUp(BigInt(fraction || "0") * ONE, 10n ** BigInt(fraction.length));
  return within(sign === "-" ? -size : size);
}

/** As fields store it. */
export const toValue = (number) => Number(written(number));

/** Without exponent, separators and idle zeros. */
export function written(number) {
  const size = absolute(number);
  const fraction = String(size % ONE).padStart(PLACES, "0").replace(/0+$/, "");
  return `${number < 0n ? "-" : ""}${size / ONE}${fraction ? `.${fraction}` : ""}`;
}

export const absolute = (number) => (number < 0n ? -number : number);

export function within(number) {
  if (absolute(number) >= LIMIT) throw new NoValue();
  return number;
}

export const times = (left, right) => within(dividedHalfUp(left * right, ONE));

export function divided(left, right) {
  if (right === 0n) throw new NoValue();
  return within(dividedHalfUp(left * ONE, right));
}

/** What a division leaves, with the sign of the divisor. */
export function modulo(left, right) {
  if (right === 0n) throw new NoValue();
  const rest = left % right;
  return rest !== 0n && rest < 0n !== right < 0n ? rest + right : rest;
}

/** Half up, away from zero, to so many places behind the point. */
export function rounded(number, places) {
  if (places >= PLACES) return number;
  const step = 10n ** BigInt(PLACES - places);
  return within(dividedHalfUp(number, step) * step);
}

/** The whole part. */
export const whole = (number) => number / ONE;

function dividedHalfUp(left, right) {
  const size = (2n * absolute(left) + absolute(right)) / (2n * absolute(right));
  return left < 0n !== right < 0n ? -size : size;
}
