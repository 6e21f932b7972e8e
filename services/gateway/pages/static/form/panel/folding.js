// On a phone the form lies over the document; folded it leaves the document to be read.
import { t } from "../texts.js";

/** Has the button of `place` fold it. Returns what folds it (true) and unfolds it (false). It folds by itself where it would lie over
    what the keyboard has brought the focus to: whoever goes through the page with it sees where they are. The menu lies over it. */
export function folding(place) {
  const toggle = place.querySelector(".panel__fold");
  toggle.addEventListener("click", () => fold(!place.classList.contains("panel--folded")));
  document.addEventListener("focusin", ({ target }) => {
    if (target === document.body || target.closest("dialog, .more") || place.contains(target)) return;
    requestAnimationFrame(() => target.matches(":focus-visible") && covers(target) && fold(true));
  });
  return fold;

  function fold(folded) {
    place.classList.toggle("panel--folded", folded);
    toggle.textContent = t(folded ? "panel.show" : "panel.hide");
    toggle.setAttribute("aria-expanded", String(!folded));
  }

  function covers(node) {
    const [mine, other] = [place, node].map((each) => each.getBoundingClientRect());
    return mine.top < other.bottom && mine.bottom > other.top && mine.left < other.right && mine.right > other.left;
  }
}
