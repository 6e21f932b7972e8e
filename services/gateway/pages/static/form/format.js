// How values read on paper; the server draws them by the same rules (services/submissions/formats.py).
import { isEmpty } from "./conditions.js";

const TOKEN = /YYYY|YY|MMMM|MMM|MM|M|DD|D|HH|H|hh|h|mm|m|ss|s|A|a|z/g;
const DEFAULT_DATE_FORMAT = "MM/DD/YYYY";
const KEPT = new Set(" -_[]()+?.,\n\t");

/** The text that stands on the document for `value`; "" for what is no text. */
export function shownText(field, value, locale) {
  if (isEmpty(value)) return "";
  const style = field.preferences?.format;
  switch (field.type) {
    case "date":
      return masked(formattedDate(value, style, locale), field.preferences?.mask);
    case "number":
      return typeof value === "number" ? masked(formattedNumber(value, style), field.preferences?.mask) : "";
    case "multiple":
      return masked(value.join(", "), field.preferences?.mask);
    case "text":
    case "cells":
    case "phone":
    case "select":
    case "radio":
    case "heading":
      return masked(String(value), field.preferences?.mask);
    default:
      return "";
  }
}

/** `iso` is `YYYY-MM-DD`; `pattern` as in `DD/MM/YYYY`. */
export function formattedDate(iso, pattern, locale = "en-US") {
  const found = /^(\d{4})-(\d{2})-(\d{2})/.exec(iso);
  if (!found) return String(iso);
  const [year, month, day] = found.slice(1).map(Number);
  const noon = new Date(Date.UTC(year, month - 1, day, 12));
  const named = (style) => new Intl.DateTimeFormat(known(locale), { month: style, day: "numeric", timeZone: "UTC" })
    .formatToParts(noon)
    .find((part) => part.type === "month").value;
  const parts = {
    YYYY: () => found[1],
    YY: () => found[1].slice(2),
    MMMM: () => named("long"),
    MMM: () => named("short"),
    MM: () => found[2],
    M: () => String(month),
    DD: () => found[3],
    D: () => String(day),
    HH: () => "00",
    H: () => "0",
    hh: () => "12",
    h: () => "12",
    mm: () => "00",
    m: () => "0",
    ss: () => "00",
    s: () => "0",
    A: () => "AM",
    a: () => "AM",
    z: () => "UTC",
  };
  return (pattern || DEFAULT_DATE_FORMAT).replace(TOKEN, (token) => parts[token]());
}

/** A day as people say it, so that nobody takes the month for the day. */
export function readableDate(iso, language) {
  const format = new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: "UTC" });
  return format.format(new Date(`${iso}T12:00:00Z`));
}

export function formattedNumber(value, style) {
  const plain = plainNumber(value);
  switch (style) {
    case "usd":
    case "gbp":
      return `${value < 0 ? "-" : ""}${style === "usd" ? "$" : "£"}${grouped(twoDigits(Math.abs(value)))}`;
    case "eur":
      return french(`${grouped(twoDigits(value))} €`);
    case "comma":
      return grouped(plain);
    case "dot":
      return grouped(plain).replace(/[,.]/g, (mark) => (mark === "," ? "." : ","));
    case "space":
      return french(grouped(plain));
    case "percent":
      return `${plain}%`;
    case "percent_space":
      return `${plain.replace(".", ",")} %`;
    default:
      return plain;
  }
}

/** `mask` true: every character that is not punctuation becomes X; a number keeps the first (or last) so many. */
export function masked(text, mask) {
  if (!mask) return text;
  const characters = [...text];
  if (mask === true) return crossed(characters);
  if (mask > 0) return characters.slice(0, mask).join("") + crossed(characters.slice(mask));
  return crossed(characters.slice(0, mask)) + characters.slice(mask).join("");
}

/** At most six decimals, never an exponent. */
export function plainNumber(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(6).replace(/\.?0+$/, "");
}

const crossed = (characters) => characters.map((character) => (KEPT.has(character) ? character : "X")).join("");

/** Rounded half to even, as Python does, when the number lies exactly between. */
function twoDigits(value) {
  const between = Number.isInteger(value * 8) && !Number.isInteger(value * 4);
  if (!between) return value.toFixed(2);
  const below = Math.floor(value * 100);
  return ((below % 2 === 0 ? below : below + 1) / 100).toFixed(2);
}

function grouped(plain) {
  const [whole, rest] = plain.split(".");
  const separated = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? separated : `${separated}.${rest}`;
}

const french = (text) => text.replace(/[,.]/g, (mark) => (mark === "," ? " " : ","));

function known(locale) {
  try {
    return Intl.getCanonicalLocales(locale)[0];
  } catch {
    return "en-US";
  }
}
