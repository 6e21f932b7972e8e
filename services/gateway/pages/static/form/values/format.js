// How values read on paper; the server draws them by the same rules (contracts/fields/paper.py).
import { isEmpty } from "./empty.js";
import { writtenOut } from "./decimal.js";
import { DATE_TOKEN, inStyle, isNumberStyle } from "./styles.js";
import { t } from "../texts.js";

const DEFAULT_DATE_FORMAT = "MM/DD/YYYY";
const MIDNIGHT = { HH: "00", H: "0", hh: "12", h: "12", mm: "00", m: "0", ss: "00", s: "0", A: "AM", a: "am", z: "" };
const MASK_KEEPS = new Set(" -_[]()+?.,\n");

/** The text that stands on the document for `value`; "" for what is no text. `zone` is for moments. */
export function shownText(field, value, locale, zone = "UTC") {
  return isEmpty(value) ? "" : masked(plainText(field, value, locale, zone), field.preferences?.mask);
}

/** True when a date in this format says the time of day as well: then its value is a moment, not a day. */
export function hasTime(pattern) {
  return (pattern ?? "").match(DATE_TOKEN)?.some((token) => "HhmsAaz".includes(token[0])) ?? false;
}

function plainText(field, value, locale, zone) {
  const style = field.preferences?.format;
  switch (field.type) {
    case "date":
      return formattedDate(value, style, locale, zone);
    case "number":
      return typeof value === "number" ? formattedNumber(value, style, locale) : "";
    case "multiple":
      return value.join(", ");
    case "verification":
      return t("verification.value");
    case "text":
    case "cells":
    case "phone":
    case "select":
    case "radio":
    case "heading":
      return String(value);
    default:
      return "";
  }
}

/** `iso` is `YYYY-MM-DD`; `pattern` as in `DD/MM/YYYY`, with `[...]` for words of its own. */
export function formattedDate(iso, pattern, locale, zone = "UTC") {
  const clock = hasTime(pattern) && /T\d/.test(iso) ? clockAt(iso, zone) : null;
  const match = /^(\d{4})-(\d{2})-(\d{2})/.exec(clock?.day ?? iso);
  if (!match) return String(iso);
  const [, year, month, day] = match;
  const parts = {
    ...MIDNIGHT,
    ...clock?.parts,
    YYYY: year,
    YY: year.slice(2),
    MMMM: nameOfMonth(match[0], "long", locale),
    MMM: nameOfMonth(match[0], "short", locale),
    MM: month,
    M: String(Number(month)),
    DD: day,
    D: String(Number(day)),
  };
  return (pattern || DEFAULT_DATE_FORMAT).replace(DATE_TOKEN, (token) => (token[0] === "[" ? token.slice(1, -1) : parts[token]));
}

/** The day of a moment in a zone, and what its time of day reads like. */
function clockAt(iso, zone) {
  const two = { month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
  const format = new Intl.DateTimeFormat("en-US", { year: "numeric", ...two, hourCycle: "h23", timeZone: zone, timeZoneName: "short" });
  const { year, month, day, hour, minute, second, timeZoneName } = Object.fromEntries(
    format.formatToParts(new Date(iso)).map(({ type, value }) => [type, value]),
  );
  const twelve = Number(hour) % 12 || 12;
  const plain = (digits) => String(Number(digits));
  return {
    day: `${year.padStart(4, "0")}-${month}-${day}`,
    parts: {
      HH: hour,
      H: plain(hour),
      hh: String(twelve).padStart(2, "0"),
      h: String(twelve),
      mm: minute,
      m: plain(minute),
      ss: second,
      s: plain(second),
      A: Number(hour) < 12 ? "AM" : "PM",
      a: Number(hour) < 12 ? "am" : "pm",
      z: timeZoneName,
    },
  };
}

/** Beside a day some languages inflect the name, so it is asked for with one. */
function nameOfMonth(iso, style, locale) {
  const format = new Intl.DateTimeFormat(known(locale), { month: style, day: "numeric", timeZone: "UTC" });
  return format.formatToParts(noon(iso)).find(({ type }) => type === "month").value;
}

/** A day as people say it, so that nobody takes the month for the day. */
export function readableDate(iso, language) {
  return new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: "UTC" }).format(noon(iso));
}

const noon = (iso) => new Date(`${iso.slice(0, 10)}T12:00:00Z`);

export function formattedNumber(value, style, locale) {
  const name = (style ?? "").toLowerCase();
  if (isNumberStyle(name)) return inStyle(writtenOut(value), value < 0, name);
  return isCurrency(name) ? inCurrency(value, name, locale) : plainNumber(value);
}

/** Without exponent and without separators. */
export function plainNumber(value) {
  return `${value < 0 ? "-" : ""}${writtenOut(value)}`;
}

export function isCurrency(name) {
  return /^[a-z]{3}$/.test(name) && Intl.supportedValuesOf("currency").includes(name.toUpperCase());
}

function inCurrency(value, name, locale) {
  const style = { style: "currency", currency: name.toUpperCase(), roundingMode: "halfEven" };
  return new Intl.NumberFormat(known(locale), style).format(value);
}

/** `mask` true hides all; a positive number keeps that many characters at the beginning, a negative one at the end. */
export function masked(text, mask) {
  const keep = maskNumber(mask);
  if (keep === null) return text;
  const characters = [...text];
  if (keep > 0) return characters.slice(0, keep).join("") + hidden(characters.slice(keep));
  if (keep < 0) return hidden(characters.slice(0, keep)) + characters.slice(keep).join("");
  return hidden(characters);
}

/** null for no mask, 0 for a whole one. */
function maskNumber(mask) {
  const text = String(mask ?? "").trim().toLowerCase();
  if (text === "true") return 0;
  return /^[+-]?\d{1,6}(\.\d+)?$/.test(text) ? Math.trunc(Number(text)) || null : null;
}

const hidden = (characters) => characters.map((character) => (MASK_KEEPS.has(character) ? character : "X")).join("");

function known(locale) {
  try {
    return Intl.getCanonicalLocales(locale)[0];
  } catch {
    return "en-US";
  }
}
