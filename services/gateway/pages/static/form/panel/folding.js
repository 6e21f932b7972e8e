// On a phone the form lies over the document; folded it leaves the document to be read.
import { t } from "../texts.js";

/** Has the button of `place` fold it. Returns what folds it (true) and unfolds it (false). */
export function folding(place) {
  const toggle = place.querySelector(".panel__fold");
  toggle.addEventListener("click", () => fold(!place.classList.contains("panel--folded")));
  return fold;

  function fold(folded) {
    place.classList.toggle("panel--folded", folded);
    toggle.textContent = t(folded ? "panel.show" : "panel.hide");
    toggle.setAttribute("aria-expanded", String(!folded));
  }
}
