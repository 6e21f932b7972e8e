// Whether an answer may be given; the server decides by the same rules (contracts/fields/values.py).
import { isEmpty } from "./empty.js";
import { isOnStep } from "./decimal.js";
import { hasTime, plainNumber, readableDate } from "./format.js";
import { firstOf, locale, t } from "../texts.js";

const LONGEST_TEXT = 10_000;
const LARGEST_NUMBER = 2 ** 53;
const CHOICES = new Set(["radio", "select", "multiple"]);
const KIND_OF_REQUIRED = { radio: "choice", select: "choice" };

/** What is wrong with `value`, as a sentence for the signer; null when nothing is. */
export function problemWith(field, value) {
  if (isEmpty(value)) return field.required ? requiredText(field) : null;
  const malformed = wrongKind(field, value);
  if (malformed) return malformed;
  const broken = brokenRule(field, value);
  return broken && (field.validation?.message || broken);
}

function requiredText(field) {
  return firstOf([`problem.required.${KIND_OF_REQUIRED[field.type] ?? field.type}`, "problem.required"]);
}

function wrongKind(field, value) {
  switch (field.type) {
    case "number":
      return typeof value === "number" && Math.abs(value) <= LARGEST_NUMBER ? null : t("problem.number");
    case "date":
      return isDate(value) || (hasTime(field.preferences?.format) && isMoment(value)) ? null : t("problem.date");
    case "phone":
      return isPhone(value) ? null : t("problem.phone");
    case "text":
    case "cells":
      return [...value].length > LONGEST_TEXT ? t("problem.long") : null;
    default:
      return null;
  }
}

function brokenRule(field, value) {
  const rules = field.validation ?? {};
  if (CHOICES.has(field.type) && field.options?.length) {
    const chosen = Array.isArray(value) ? value : [value];
    return chosen.every((option) => field.options.includes(option)) ? null : t("problem.options");
  }
  switch (field.type) {
    case "text":
    case "cells":
    case "phone": {
      const pattern = rules.pattern ? compiled(rules.pattern) : null;
      return !pattern || pattern.test(field.type === "phone" ? withoutSeparators(value) : value)
        ? null
        : t("problem.pattern");
    }
    case "number":
      return numberProblem(value, rules);
    case "date":
      return dateProblem(value, rules);
    default:
      return null;
  }
}

export const isPhone = (value) => /^\+[1-9][0-9]{4,14}$/.test(withoutSeparators(value));

export const withoutSeparators = (phone) => phone.replace(/[\s().\-/]/g, "");

/** `YYYY-MM-DD`, and a day of the calendar. */
export function isDate(text) {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text < "0001-01-01") return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** `YYYY-MM-DDTHH:MM`, with seconds and a zone or without; not of the calendar's edges, where other zones are beyond it. */
function isMoment(text) {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text) || !isDate(text.slice(0, 10))) return false;
  return text >= "0002" && text < "9999" && !Number.isNaN(new Date(text).getTime());
}

/** A bound as a number, or null. */
export function numberBound(bound) {
  if (typeof bound === "number") return bound;
  return typeof bound === "string" && bound.trim() !== "" && !Number.isNaN(Number(bound)) ? Number(bound) : null;
}

/** A bound as an ISO date, or null. */
export function dateBound(bound) {
  return typeof bound === "string" && /^\d{4}-\d{2}-\d{2}/.test(bound) ? bound.slice(0, 10) : null;
}

function numberProblem(value, rules) {
  const [low, high, step] = [rules.min, rules.max, rules.step].map(numberBound);
  if (low !== null && value < low) return t("problem.min", { limit: plainNumber(low) });
  if (high !== null && value > high) return t("problem.max", { limit: plainNumber(high) });
  if (!step || step <= 0 || isOnStep(value, low ?? 0, step)) return null;
  return step === 1 && Number.isInteger(low ?? 0) ? t("problem.whole") : t("problem.step", { step: plainNumber(step) });
}

function dateProblem(value, rules) {
  const [low, high] = [dateBound(rules.min), dateBound(rules.max)];
  const day = value.slice(0, 10);
  if (low && day < low) return t("problem.date_min", { limit: readableDate(low, locale) });
  if (high && day > high) return t("problem.date_max", { limit: readableDate(high, locale) });
  return null;
}

/**
 * HTML's pattern attribute: the whole text must match. A pattern that no engine reads is no rule here. Nor is one that RE2, by
 * which the server judges, reads otherwise: no value might please both.
 */
function compiled(pattern) {
  const escaped = pattern.match(/\\./gs) ?? [];
  if (ODD_SET.test(pattern.replace(/\\./gs, ""))) return null;
  for (const flags of escaped.every((one) => PLAIN_ESCAPE.test(one)) ? ["v", "u", ""] : ["v", "u"]) {
    try {
      return new RegExp(`^(?:${pattern})$`, flags);
    } catch {
      continue;
    }
  }
  return null;
}

/** A set that begins with ] or has a set in it ([[:digit:]]), or what would be arithmetic of sets. */
const ODD_SET = /\[\^?\]|\[[^\]]*(\[|&&|--)/;

/** Without a flag, \A and the like are the letters themselves. */
const PLAIN_ESCAPE = /\\([^a-zA-Z]|[bBdDfnrsStvwW])/s;
