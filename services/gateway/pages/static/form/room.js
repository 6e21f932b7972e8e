// How much room the form leaves for the document, on a phone: it lies over the lower part of the page, above the keyboard.

/** Keeps `--panel-height` and `--keyboard` true, and calls `onChange` when either changes. */
export function watchRoom(panel, onChange) {
  const root = document.documentElement;
  let before = "";

  function measure() {
    const view = window.visualViewport;
    // Where the keyboard lies over the page (Safari) instead of making it smaller. Zooming in is no keyboard.
    const covered = view && view.scale === 1 ? Math.max(0, innerHeight - view.height - view.offsetTop) : 0;
    const now = `${panel.offsetHeight}/${Math.round(covered)}`;
    if (now === before) return;
    before = now;
    root.style.setProperty("--panel-height", `${panel.offsetHeight}px`);
    root.style.setProperty("--keyboard", `${Math.round(covered)}px`);
    onChange();
  }

  new ResizeObserver(measure).observe(panel);
  window.visualViewport?.addEventListener("resize", measure);
  window.visualViewport?.addEventListener("scroll", measure);
  addEventListener("orientationchange", () => requestAnimationFrame(measure));
  measure();
}
