// What signers read first: who wants what of them, and until when. The server has written it (signing/start.html), so that it can be
// read before this script is there; here it becomes part of the form.
import { button, el } from "../dom.js";
import { MOMENT } from "../reader.js";
import { count, locale, t, tFor } from "../texts.js";

const EARLY = "#start"; // where the server's Start leads: it is remembered in the address

/** `onStart` null: they have no fields, they may only look. `onWrongRecipient(opener)` when they say that it is not for them. */
export function wakeStartScreen(screen, state, onStart, onWrongRecipient) {
  const notMe = screen.querySelector("#not-me");
  notMe.addEventListener("click", () => onWrongRecipient(notMe));
  fillStartScreen(screen, state);
  if (!onStart) return;
  const link = screen.querySelector("#start-link");
  const start = button(link.textContent, onStart, "button--main");
  const focused = document.activeElement === link;
  link.replaceWith(start);
  if (focused) start.focus();
}

/** Says what is asked for as it is now: this tab may know more than the server did, or the sender has changed it since. */
export function fillStartScreen(screen, state) {
  const { form } = state;
  const part = (name) => screen.querySelector(`#start-${name}`);
  const asks = state.steps().length ? "start.asks" : "start.asks_to_confirm";
  if (part("asks")) part("asks").textContent = tFor(form, asks, { sender: form.sender_name || form.account_name, document: form.submission_name });
  if (part("task")) part("task").textContent = whatToDo(state);
  part("until").hidden = !form.expire_at;
  part("until").replaceChildren(...(form.expire_at ? [`${t("start.until")} `, moment(form.expire_at)] : []));
}

/** True once, when Start was pressed before there was a script. */
export function startedEarly() {
  if (location.hash !== EARLY) return false;
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** A moment in the reader's own time, with its zone. */
export function moment(iso) {
  return el("time", { datetime: iso }, new Intl.DateTimeFormat(locale, MOMENT).format(new Date(iso)));
}

function whatToDo(state) {
  const steps = state.steps().length;
  if (!steps) return tFor(state.form, "start.nothing");
  return state.resumed ? t("start.again") : count("start.steps", steps);
}

/** What follows after Complete, where signers sign with a certificate of their own; "" where nothing does. */
export function confirmsNext({ confirm_with: provider }) {
  return provider ? t("confirm.next", { provider }) : "";
}
