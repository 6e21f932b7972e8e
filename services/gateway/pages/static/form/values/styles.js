// Ways of writing numbers and days that depend on no language; the server has the same (contracts/fields/paper.py).
import { rounded } from "./decimal.js";

export const DATE_TOKEN = /\[[^\]]*\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|HH|H|hh|h|mm|m|ss|s|A|a|z/g;
const NO_BREAK = "\u00a0";
// Sign before, sign behind, separator of thousands, decimal sign, decimals (null: as many as the number has).
const NUMBER_FORMATS = {
  usd: ["$", "", ",", ".", 2],
  gbp: ["£", "", ",", ".", 2],
  eur: ["", `${NO_BREAK}€`, NO_BREAK, ",", 2],
  comma: ["", "", ",", ".", null],
  dot: ["", "", ".", ",", null],
  space: ["", "", NO_BREAK, ",", null],
  percent: ["", "%", "", ".", null],
  percent_space: ["", `${NO_BREAK}%`, "", ",", null],
};

export const isNumberStyle = (style) => style in NUMBER_FORMATS;

/** The number of these digits, which are written out, in a style; plain where it is none. */
export function inStyle(digits, isNegative, style) {
  if (!isNumberStyle(style)) return `${isNegative ? "-" : ""}${digits}`;
  const [before, behind, thousands, point, decimals] = NUMBER_FORMATS[style];
  const shown = decimals === null ? digits : rounded(digits, decimals);
  const [whole, fraction] = shown.split(".");
  const sign = isNegative && /[1-9]/.test(shown) ? "-" : "";
  const grouped = thousands ? whole.replace(/\B(?=(\d{3})+$)/g, thousands) : whole;
  return `${sign}${before}${grouped}${fraction ? point + fraction : ""}${behind}`;
}

/** `iso` is `YYYY-MM-DD`, `pattern` one without names and times. */
export function datePattern(iso, pattern) {
  const [year, month, day] = iso.split("-");
  const parts = { YYYY: year, YY: year.slice(2), MM: month, M: String(Number(month)), DD: day, D: String(Number(day)) };
  return pattern.replace(DATE_TOKEN, (token) => (token[0] === "[" ? token.slice(1, -1) : parts[token]));
}
