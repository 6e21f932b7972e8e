// What the page says. The messages come with the page, in the reader's language.
import { dataOf } from "./dom.js";
import { localeFor } from "./reader.js";

const { language, words } = dataOf("texts");
const plural = new Intl.PluralRules(language);
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const AGAINST = document.dir === "rtl" ? /(?![\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}])\p{L}/u : RIGHT_TO_LEFT;

export const locale = localeFor(language);

const numbers = new Intl.NumberFormat(locale);

/** The text of `key`, with `{name}` filled in. */
export function t(key, values = {}) {
  return filled(words[key] ?? key, values);
}

/** The text of the first of `keys` that there is. */
export function firstOf(keys, values = {}) {
  return t(keys.find((key) => key in words) ?? keys.at(-1), values);
}

/** The text of `key` for who is asked for something else than to sign (`acts_as`), where there is one. */
export function tFor({ acts_as: actsAs }, key, values = {}) {
  return firstOf([`${key}.${actsAs}`, key], values);
}

/** The text of `key` for a number of things: the form of its plural category. */
export function count(key, number, values = {}) {
  const forms = words[key] ?? { other: key };
  return filled(forms[plural.select(number)] ?? forms.other, { count: numbers.format(number), ...values });
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? isolated(String(values[name])) : whole));
}

/** A value that runs against the sentence's direction keeps its own, and its place in the sentence. */
function isolated(value) {
  return AGAINST.test(value) ? `\u2068${value}\u2069` : value;
}
