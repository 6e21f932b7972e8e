// What formulas come to. The server reads them and sends their trees; it computes by the same rules
// (contracts/fields/formulas/functions.py), and what it computes counts.
import { isEmpty } from "./empty.js";
import { absolute, divided, modulo, NoValue, ofText, ofValue, ONE, rounded, times, toValue, whole, within, written } from "./exact.js";
import { datePattern, inStyle } from "./styles.js";

const LARGEST_NUMBER = 2n ** 53n * ONE;
const LONGEST_TEXT = 10_000;
const PLACES = 20n;
const DAY = 86_400_000;
const BLANKS = " \\t\\n\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000";
const AROUND = new RegExp(`^[${BLANKS}]+|[${BLANKS}]+$`, "g");

/** A day, as the days since 1970: so that it is no number. */
class Day {
  constructor(number) {
    this.number = number;
  }

  toString() {
    return new Date(this.number * DAY).toISOString().slice(0, 10);
  }
}

const FIRST_DAY = dayOf("0001-01-01");
const LAST_DAY = dayOf("9999-12-31");

/** The uuids that a tree names. */
export function references([kind, what, parts]) {
  if (kind === "field") return [what];
  return kind === "call" ? parts.flatMap(references) : [];
}

/** What `tree` computes for `field`, as the field stores it; null for no value. `valueOf(uuid)`: the value of a field, as it is
    stored, `fieldOf(uuid)` the field. */
export function computed(field, tree, valueOf, fieldOf) {
  try {
    const value = evaluate(tree, (uuid) => operand(fieldOf(uuid), valueOf(uuid)));
    return value === null ? null : stored(field, value);
  } catch (error) {
    if (error instanceof NoValue) return null;
    throw error;
  }
}

/** Whether a condition holds; what cannot be computed holds. */
export function holds(tree, valueOf, fieldOf) {
  try {
    return truth(evaluate(tree, (uuid) => operand(fieldOf(uuid), valueOf(uuid))));
  } catch (error) {
    if (error instanceof NoValue) return true;
    throw error;
  }
}

function stored(field, value) {
  switch (field.type) {
    case "number":
      return absolute(value) <= LARGEST_NUMBER ? toValue(value) : null;
    case "date":
      return String(value);
    case "checkbox":
      return truth(value);
    default: {
      const text = field.type === "cells" ? textOf(value).replace(/\n/g, " ") : textOf(value);
      return text && length(text) <= LONGEST_TEXT ? text : null;
    }
  }
}

/** A stored value as formulas reckon with it. What is no value of such a field counts as none. */
export function operand(field, value) {
  switch (field?.type) {
    case undefined:
      return null;
    case "number":
      return typeof value === "number" ? ofValue(value) : null;
    case "date":
      return typeof value === "string" ? dayOf(value.slice(0, 10)) : null;
    case "checkbox":
      return value === true;
    case "multiple":
      return Array.isArray(value) ? value : [];
    case "text":
    case "cells":
    case "phone":
    case "select":
    case "radio":
      return typeof value === "string" ? value : "";
    default:
      return value ?? null;
  }
}

export function evaluate(tree, valueOf) {
  const [kind, what, parts] = tree;
  switch (kind) {
    case "field":
      return valueOf(what);
    case "number":
      return ofText(what);
    case "text":
    case "boolean":
      return what;
    case "date":
      return dayOf(what);
    case "empty":
      return null;
  }
  if (what === "if") return evaluate(parts[truth(evaluate(parts[0], valueOf)) ? 1 : 2], valueOf);
  if (what === "and" || what === "or") {
    const first = truth(evaluate(parts[0], valueOf));
    return first === (what === "or") ? first : truth(evaluate(parts[1], valueOf));
  }
  const compute = CALLS[what];
  if (!compute) throw new NoValue(); // of a newer server: it computes
  return compute(...parts.map((part) => evaluate(part, valueOf)));
}

const truth = (value) => value === true;
const number = (value) => value ?? 0n;
const text = (value) => value ?? "";
const reckon = (compute) => (...given) => compute(...given.map(number));
const length = (value) => [...value].length;

function limited(value) {
  if (length(value) > LONGEST_TEXT) throw new NoValue();
  return value;
}

function equal(left, right) {
  if (isEmpty(left) || isEmpty(right)) return isEmpty(left) && isEmpty(right);
  return left instanceof Day ? left.number === right.number : left === right;
}

const sized = (value) => (value instanceof Day ? value.number : value);
const ordered = (holds) => (left, right) => left !== null && right !== null && holds(sized(left), sized(right));

function extreme(isBetter) {
  return (...given) => {
    const there = given.filter((value) => value !== null);
    return there.length ? there.reduce((best, value) => (isBetter(sized(value), sized(best)) ? value : best)) : null;
  };
}

function textOf(value) {
  if (value === null) return "";
  if (typeof value === "bigint") return written(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

const trim = (value) => text(value).replace(AROUND, "");

function dayOf(iso) {
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(iso) || iso < "0001") return null;
  const moment = new Date(`${iso}T00:00:00Z`).getTime();
  const day = new Day(moment / DAY);
  return !Number.isNaN(moment) && String(day) === iso ? day : null;
}

function later(day, days) {
  const moved = BigInt(day.number) + days;
  if (moved < BigInt(FIRST_DAY.number) || moved > BigInt(LAST_DAY.number)) throw new NoValue();
  return new Day(Number(moved));
}

function monthsLater(day, months) {
  const [year, month, number] = String(day).split("-").map(Number);
  const total = BigInt(year * 12 + month - 1) + months;
  if (total < 12n || total >= 120_000n) throw new NoValue();
  const [toYear, toMonth] = [Number(total / 12n), Number(total % 12n)];
  const two = (part) => String(part).padStart(2, "0");
  const inMonth = (last) => dayOf(`${String(toYear).padStart(4, "0")}-${two(toMonth + 1)}-${two(last)}`);
  for (let last = number; ; last--) {
    const moved = inMonth(last);
    if (moved) return moved;
  }
}

function places(value) {
  const digits = whole(number(value));
  return Number(digits < -PLACES ? -PLACES : digits > PLACES ? PLACES : digits);
}

/** By name; their arguments were judged by the server when the formula was written. */
const CALLS = {
  round: (value, digits = 0n) => rounded(number(value), places(digits)),
  abs: reckon(absolute),
  sum: (...given) => given.reduce((total, value) => within(total + number(value)), 0n),
  min: extreme((one, other) => one < other),
  max: extreme((one, other) => one > other),
  number: (value) => ofText(trim(value)),
  days_between: (first, last) => (first && last ? BigInt(last.number - first.number) * ONE : null),
  add_days: (day, days) => day && later(day, whole(number(days))),
  add_months: (day, months) => day && monthsLater(day, whole(number(months))),
  concat: (...given) => limited(given.map(textOf).join("")),
  format: (value, pattern) => {
    if (value === null) return "";
    return value instanceof Day ? datePattern(String(value), pattern) : inStyle(written(absolute(value)), value < 0n, pattern);
  },
  upper: (value) => limited(text(value).toUpperCase()),
  lower: (value) => limited(text(value).toLowerCase()),
  trim,
  contains: (held, wanted) =>
    Array.isArray(held) ? held.includes(text(wanted)) : text(wanted) !== "" && text(held).toLowerCase().includes(text(wanted).toLowerCase()),
  is_empty: (value) => isEmpty(value),
  options: (...given) => given.map(text),
  negative: reckon((value) => -value),
  "+": reckon((left, right) => within(left + right)),
  "-": reckon((left, right) => within(left - right)),
  "*": reckon(times),
  "/": reckon(divided),
  "%": reckon(modulo),
  "=": equal,
  "!=": (left, right) => !equal(left, right),
  "<": ordered((left, right) => left < right),
  "<=": ordered((left, right) => left <= right),
  ">": ordered((left, right) => left > right),
  ">=": ordered((left, right) => left >= right),
  not: (value) => !truth(value),
};
