// What the page says. The words come with the page, in the reader's language.
import { dataOf } from "./dom.js";
import { localeFor } from "./reader.js";

const { language, words } = dataOf("texts");
const plural = new Intl.PluralRules(language);

export const locale = localeFor(language);

/** The text of `key`, with `{name}` filled in. */
export function t(key, values = {}) {
  const text = words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The text of the first of `keys` that there is. */
export function firstOf(keys, values = {}) {
  return t(keys.find((key) => key in words) ?? keys.at(-1), values);
}

/** The text of `key` for a number of things. */
export function count(key, number, values = {}) {
  const form = `${key}.${plural.select(number)}`;
  return t(form in words ? form : `${key}.other`, { count: number, ...values });
}
