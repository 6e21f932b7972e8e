// How much room the header and the form leave for the document. On a phone the form lies over the lower part of the page, above
// the keyboard.

const LOW = 450; // pixels

/** Keeps `--header`, `--tools`, `--panel-height` and `--keyboard` true, and calls `onChange` when one of them changes. */
export function watchRoom(header, tools, panel, onChange) {
  const root = document.documentElement;
  let before = "";

  /** Little is seen, mostly because the keyboard is open: there the form gets all of it (form.css). */
  const isLow = (view) => (view?.scale === 1 ? view.height : innerHeight) < LOW;

  function measure() {
    const view = window.visualViewport;
    root.classList.toggle("low", isLow(view));
    // Where the keyboard lies over the page (Safari) instead of making it smaller. Zooming in is no keyboard.
    const covered = view && view.scale === 1 ? Math.max(0, innerHeight - view.height - view.offsetTop) : 0;
    const now = `${header.offsetHeight}/${tools.offsetHeight}/${panel.offsetHeight}/${Math.round(covered)}`;
    if (now === before) return;
    before = now;
    root.style.setProperty("--header", `${header.offsetHeight}px`);
    root.style.setProperty("--tools", `${tools.offsetHeight}px`);
    root.style.setProperty("--panel-height", `${panel.offsetHeight}px`);
    root.style.setProperty("--keyboard", `${Math.round(covered)}px`);
    onChange();
  }

  const sizes = new ResizeObserver(measure);
  for (const part of [header, tools, panel]) sizes.observe(part);
  window.visualViewport?.addEventListener("resize", measure);
  window.visualViewport?.addEventListener("scroll", measure);
  addEventListener("orientationchange", () => requestAnimationFrame(measure));
  measure();
}
