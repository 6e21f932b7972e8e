// What the sender has changed since the signer opened the page: remembered over the reload that shows the new state, then said
// in words above the form and marked on the document.
import { announce, button, el } from "./dom.js";
import { shownText } from "./values/format.js";
import { t } from "./texts.js";

const KEY = `changes:${location.pathname}`;
const OF_DOCUMENT = "documents.";

/** Remembers what `details` of the server's refusal name, as it stands on the page that is about to go. */
export function keepChanges(details, state) {
  const names = new Map(state.form.documents.map(({ uuid, name }) => [uuid, name]));
  const changes = details
    .filter(({ field }) => field !== "shown")
    .map(({ field: key }) => {
      const field = state.byUuid.get(key);
      const name = field?.label ?? (key.startsWith(OF_DOCUMENT) ? names.get(key.slice(OF_DOCUMENT.length)) : null) ?? null;
      return { key, name, before: field ? textOf(field, state) : "" };
    });
  try {
    sessionStorage.setItem(KEY, JSON.stringify(changes));
  } catch {
    // Without a storage the page is shown anew, without words about it.
  }
}

/** Says what was remembered, once, at the top of `place`, and marks it on the document. */
export function showChanges(state, view, place) {
  const changes = takeStored();
  if (!changes) return;
  view.mark(changes.map(({ key }) => key));
  const sentences = [...new Set(changes.map((change) => sentence(change, state)).filter(Boolean))];
  const notice = el(
    "div",
    { class: "changes", role: "alert" },
    el("h2", { class: "changes__heading" }, t("changed.heading")),
    el("p", {}, t("changed.intro")),
    sentences.length ? el("ul", {}, sentences.map((sentence) => el("li", {}, sentence))) : null,
    button(t("changed.seen"), () => notice.remove(), "button--small"),
  );
  place.prepend(notice);
  announce([t("changed.heading"), ...sentences].join(" "));
}

function sentence({ key, name, before }, state) {
  const field = state.byUuid.get(key);
  if (key.startsWith(OF_DOCUMENT)) return name ? t("changed.document", { name }) : null;
  if (!field) return name ? t("changed.gone", { name }) : null;
  const after = textOf(field, state);
  if (before === after) return t("changed.field", { name: field.label });
  return before ? t("changed.value", { name: field.label, before, after: after || "–" }) : t("changed.new_value", { name: field.label, after });
}

function textOf(field, state) {
  if (field.display) return field.display;
  const value = state.value(field.uuid);
  return value === null || state.attachments.has(value) ? "" : String(shownText(field, value, state.locale, state.form.time_zone) ?? "");
}

function takeStored() {
  try {
    const stored = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    return JSON.parse(stored);
  } catch {
    return null;
  }
}
