// What signers read first: who wants what of them, and until when.
import { button, el } from "../dom.js";
import { MOMENT } from "../reader.js";
import { count, locale, t } from "../texts.js";

/** `onStart` null: they have no fields, they may only look. `onWrongRecipient(opener)` when they say that it is not for them. */
export function startScreen(state, onStart, onWrongRecipient) {
  const { form } = state;
  const notMe = button(t("wrong_recipient.button"), () => onWrongRecipient(notMe), "button--small button--quiet");
  const asks = state.steps().length ? "start.asks" : "start.asks_to_confirm";
  return el(
    "div",
    { class: "start" },
    el("h2", { class: "start__heading" }, onStart ? t("start.heading") : t("start.view_only_heading")),
    el("div", { class: "start__whom" }, form.submitter_name ? el("p", {}, t("start.hello", { name: form.submitter_name })) : null, notMe),
    el("p", {}, onStart ? t(asks, { sender: form.sender_name || form.account_name, document: form.submission_name }) : t("start.view_only")),
    onStart ? el("p", { class: "soft" }, whatToDo(state)) : null,
    form.expire_at ? el("p", { class: "soft" }, `${t("start.until")} `, moment(form.expire_at)) : null,
    onStart ? el("p", { class: "soft" }, t("start.not_yet")) : null,
    onStart ? el("div", { class: "buttons" }, button(t("start.button"), onStart, "button--main")) : null,
  );
}

/** A moment in the reader's own time, with its zone. */
export function moment(iso) {
  return el("time", { datetime: iso }, new Intl.DateTimeFormat(locale, MOMENT).format(new Date(iso)));
}

function whatToDo(state) {
  const steps = state.steps().length;
  if (!steps) return t("start.nothing");
  return state.resumed ? t("start.again") : count("start.steps", steps);
}
