// The look that an embedding page asks for: a few values, each checked here, because whatever frames the page may say anything.
// docs/embedding.md has the table. What could not be read is refused, and the rest is taken.

const LEAST_CONTRAST = 4.5; // WCAG 2.2, 1.4.3
const SHEET = "#ffffff";
const INK = "#1b2430";
const SOFT_INK = "#4d5866";
const DARKER = 0.73;
const MOST_RADIUS = 32;
const root = document.documentElement;
let light = [];

/** Takes the values of `wanted` that are good, and returns a sentence for each that is not: `[{ name, reason }]`. */
export function dress(wanted) {
  const problems = [];
  const given = Object.fromEntries(Object.entries(wanted ?? {}).filter(([, value]) => typeof value === "string" && value.trim()));
  const color = (name) => {
    const value = given[name]?.trim().toLowerCase();
    if (value === undefined || /^#[0-9a-f]{6}$/.test(value)) return value;
    problems.push({ name, reason: "must be a colour such as #175c4c" });
  };
  const paper = readable(problems, "background-color", color("background-color"), [INK, SOFT_INK]);
  const ink = readable(problems, "text-color", color("text-color"), [SHEET, paper]);
  const accent = readable(problems, "accent-color", color("accent-color"), [SHEET, paper]);
  light = Object.entries({
    "--paper": paper,
    "--ink": ink,
    "--accent": accent,
    "--accent-dark": accent && mixed(accent, DARKER, 0),
    "--accent-tint": accent && mixed(accent, 0.1, 229.5),
    "--on-accent": accent && SHEET,
  });
  const radius = given["corner-radius"]?.trim();
  if (radius !== undefined) {
    const pixels = /^(\d{1,2})px$/.exec(radius)?.[1];
    if (pixels === undefined || pixels > MOST_RADIUS) problems.push({ name: "corner-radius", reason: `must be from 0px to ${MOST_RADIUS}px` });
    else for (const name of ["--radius", "--radius-large"]) root.style.setProperty(name, `${pixels}px`);
  }
  const font = given["font-family"]?.trim();
  if (font !== undefined) {
    if (/^[\p{L}\p{N} ,"'_-]{1,100}$/u.test(font) && CSS.supports("font-family", font)) root.style.setProperty("--font", `${font}, system-ui, sans-serif`);
    else problems.push({ name: "font-family", reason: "must be names of fonts, separated by commas" });
  }
  paint();
  return problems;
}

/** Dark screens keep the page's own colours: the given ones were checked on light paper. */
function paint() {
  for (const [name] of light) root.style.removeProperty(name);
  if (getComputedStyle(root).colorScheme.includes("dark")) return;
  for (const [name, value] of light) if (value) root.style.setProperty(name, value);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

function readable(problems, name, color, others) {
  if (!color) return undefined;
  for (const other of others) {
    if (!other) continue;
    const found = contrast(color, other);
    if (found >= LEAST_CONTRAST) continue;
    const reason = `must reach a contrast of ${LEAST_CONTRAST} to 1 against ${other} (WCAG 2.2, 1.4.3); it has ${found.toFixed(2)}`;
    problems.push({ name, reason });
    return undefined;
  }
  return color;
}

function contrast(one, other) {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(color) {
  const [red, green, blue] = parts(color).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function mixed(color, share, rest) {
  return `rgb(${parts(color).map((part) => Math.round(part * share + rest)).join(" ")})`;
}

function parts(color) {
  return [1, 3, 5].map((place) => parseInt(color.slice(place, place + 2), 16));
}
