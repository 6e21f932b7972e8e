// The quiet menu in the header: the ways on that a signer has beside completing and declining.
import { button, el } from "../dom.js";
import { t } from "../texts.js";
import { openQuestion } from "./asking.js";
import { openDelegation } from "./delegating.js";
import { openLater } from "./going_on_later.js";
import { openReturn } from "./returning.js";

const WAYS = {
  later: { text: () => t("later.button"), open: openLater },
  ask: { text: () => t("ask.button"), open: openQuestion },
  delegate: { text: () => t("delegate.button"), open: openDelegation },
  return: { text: () => t("return.button"), open: openReturn },
};

/** `context`: what the ways need of the page (`form`, `saver`, `traffic`, `onChanged`). */
export function wakeMenu(context) {
  const opener = document.getElementById("more");
  const list = document.getElementById("more-ways");
  const ways = (context.form.ways ?? []).filter((way) => way in WAYS);
  if (!opener || !ways.length) return;
  list.replaceChildren(...ways.map((way) => el("li", {}, button(WAYS[way].text(), () => choose(way), "more__way"))));
  opener.addEventListener("click", () => show(list.hidden));
  list.parentElement.addEventListener("keydown", moved);
  list.parentElement.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !list.parentElement.contains(relatedTarget)) show(false);
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!list.parentElement.contains(target)) show(false);
  });

  function show(open) {
    list.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    if (open) list.querySelector("button").focus();
  }

  function choose(way) {
    show(false);
    opener.focus();
    WAYS[way].open({ ...context, opener });
  }

  function moved(event) {
    if (list.hidden) return;
    if (event.key === "Escape") {
      show(false);
      opener.focus();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement) + step;
    buttons[(at + buttons.length) % buttons.length].focus();
    event.preventDefault();
  }
}
