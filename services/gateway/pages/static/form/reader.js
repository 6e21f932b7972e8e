/** `language` as it is written in the reader's country, such as `en-GB`: dates differ. */
export function localeFor(language) {
  return navigator.languages.find((tag) => tag.split("-")[0] === language) ?? language;
}

/** How a moment is written, with its zone. */
export const MOMENT = { day: "numeric", month: "long", year: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" };
