// The pictures of the pages: the first page first, the others when they come near, each in the width at which it is shown, and
// sharper when somebody looks closer. Text that is that small is read no better with more than two pixels for one of the page.
import { button, el } from "../dom.js";
import { t } from "../texts.js";

const WIDTHS = [700, 1000, 1400, 2100]; // those that the server draws
const DENSITY = 2;
const ENOUGH = 0.92; // of the pixels: a little less is not seen
const NEAR = "100% 0px"; // heights of the window

export class PagePictures {
  #sheets = new Map(); // sheet -> { page, document, number, image, wanted }
  #first = null;
  #preload = document.querySelector('link[rel="preload"][as="image"]');
  #near = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: NEAR });
  #sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => this.#fit(target)));

  constructor() {
    /** The first page is there, or will not come. */
    this.ready = new Promise((resolve) => (this.isReady = resolve));
    window.visualViewport?.addEventListener("resize", () => this.#fitAll());
    addEventListener("beforeprint", () => this.#sheets.forEach((entry) => this.#show(entry)));
  }

  /** Puts the picture of a page onto its sheet. */
  add(sheet, document, page, number) {
    const entry = { sheet, page, document, number, image: null, wanted: false, width: 0 };
    this.#first ??= entry;
    this.#sheets.set(sheet, entry);
    sheet.prepend(this.#image(entry));
    if (entry === this.#first) this.#show(entry);
    this.#near.observe(sheet);
    this.#sizes.observe(sheet);
  }

  #image(entry) {
    const { document, number } = entry;
    const image = el("img", {
      class: "sheet__picture",
      alt: t("document.page", { number, count: document.pages.length, name: document.name }),
      decoding: "async",
      fetchpriority: entry === this.#first ? "high" : null,
    });
    image.addEventListener("load", () => this.#loaded(entry));
    image.addEventListener("error", () => {
      const again = button(t("document.reload"), () => {
        failed.replaceWith(this.#image(entry));
        this.#show(entry);
      });
      const failed = el("div", { class: "sheet__failed" }, el("p", {}, t("document.failed")), again);
      image.replaceWith(failed);
      this.#loaded(entry);
    });
    entry.image = image;
    entry.width = 0;
    return image;
  }

  /** What is in sight waits for nothing but the first page, which comes with all that the network has. */
  #loaded(entry) {
    if (entry !== this.#first || entry.isThere) return;
    entry.isThere = true;
    this.isReady();
    for (const other of this.#sheets.values()) if (other.wanted) this.#show(other);
  }

  /** Whether the first page is shown and under way: of a document that a condition leaves out, nothing comes. */
  #firstIsComing() {
    return !this.#first.isThere && this.#first.sheet.clientWidth > 0;
  }

  #seen(entries) {
    if (!this.#firstIsComing()) this.isReady();
    for (const { target, isIntersecting } of entries) {
      const entry = this.#sheets.get(target);
      if (!isIntersecting) continue;
      entry.wanted = true;
      if (!this.#firstIsComing() || entry === this.#first) this.#show(entry);
    }
  }

  #show(entry) {
    entry.wanted = true;
    entry.isAsked = true;
    this.#fit(entry.sheet);
  }

  /** The picture of the first page is under way since the browser read the head of this page (first_picture.html): asked for in the
      same words, it is not fetched twice. True when it is this one. By the time it is there, a larger one may be needed. */
  #takePreloaded({ page, image, sheet }) {
    const link = this.#preload;
    if (!link?.imageSrcset?.startsWith(`${page.url}?`)) return false;
    this.#preload = null;
    const entry = this.#sheets.get(sheet);
    entry.width = Infinity;
    image.addEventListener("load", () => {
      entry.width = Number(new URL(image.currentSrc).searchParams.get("width"));
      this.#fit(sheet);
    }, { once: true });
    image.sizes = link.imageSizes;
    image.srcset = link.imageSrcset;
    return true;
  }

  #fitAll() {
    for (const sheet of this.#sheets.keys()) this.#fit(sheet);
  }

  /** A larger picture takes the place of a smaller one when it is there; never the other way. */
  #fit(sheet) {
    const entry = this.#sheets.get(sheet);
    const shown = sheet.clientWidth;
    if (!entry.isAsked || !shown) return;
    const closer = window.visualViewport?.scale ?? 1;
    const needed = shown * Math.min(devicePixelRatio, DENSITY) * closer;
    const width = WIDTHS.find((each) => each >= ENOUGH * needed) ?? WIDTHS.at(-1);
    if (width <= entry.width) return;
    if (!entry.width && this.#takePreloaded(entry)) return;
    const isFirst = !entry.width;
    entry.width = width;
    const address = `${entry.page.url}?width=${width}`;
    if (isFirst) {
      entry.image.src = address;
      return;
    }
    const sharper = new Image();
    sharper.addEventListener("load", () => {
      if (entry.width !== width) return;
      entry.image.removeAttribute("srcset");
      entry.image.src = address;
    });
    sharper.src = address;
  }
}
