// On a small phone, closer and farther, find, and the text fold into one button: whoever needs none of them gets the room. Wider
// windows have them side by side, and no button (pages.css).
import { button, el } from "../dom.js";
import { t } from "../texts.js";

const ID = "document-view";

/** The button, and what it opens: `tools`, of which those with `aria-pressed` close it again. */
export function foldedTools(tools) {
  const open = button(t("document.view"), () => unfold(all.classList.contains("document__view--folded")), "button--small document__unfold");
  const all = el("div", { class: "document__view", id: ID }, tools);
  open.setAttribute("aria-controls", ID);

  function unfold(isOpen) {
    all.classList.toggle("document__view--folded", !isOpen);
    open.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) addEventListener("pointerdown", outside, true);
    else removeEventListener("pointerdown", outside, true);
  }

  function outside({ target }) {
    if (!all.contains(target) && !open.contains(target)) unfold(false);
  }

  all.addEventListener("click", ({ target }) => {
    if (target.closest("[aria-pressed]")) unfold(false);
  });
  all.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !open.getClientRects().length) return;
    unfold(false);
    open.focus();
  });
  unfold(false);
  return [open, all];
}
