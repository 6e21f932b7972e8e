// The row above the pages, always in reach: which page is in sight, a jump to another one, all pages in small, closer and farther,
// find, and the reading view.
import { button, calm, el } from "../dom.js";
import { count, t } from "../texts.js";
import { foldedTools } from "./folded_tools.js";

const MIDDLE = "-45% 0px -45% 0px";
const SMALL = 160; // pixels

export class PageTools {
  #inSight = new Map(); // node -> its page
  #watch = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: MIDDLE });
  #current = null;

  /** `pages`: `{ document, page, number, sheet, section, places, isThere }`. `acts`: `zoom(step)`, `read(isOpen)`, `find(isOpen)`,
      `show(page)`. */
  constructor(pages, acts) {
    Object.assign(this, { pages, acts });
    this.smaller = labelled("−", t("document.smaller"), () => acts.zoom(-1));
    this.larger = labelled("+", t("document.larger"), () => acts.zoom(1));
    this.reading = toggle(t("reading.button"), (isOn) => acts.read(isOn));
    this.finding = toggle(t("find.button"), (isOn) => acts.find(isOn));
    this.number = el("input", {
      class: "pages__number",
      inputmode: "numeric",
      autocomplete: "off",
      maxlength: 5,
      "aria-label": t("document.go_to_page"),
      value: "1",
    });
    this.total = el("span", { class: "pages__total" });
    const jump = el("form", { class: "pages__jump" }, this.number, this.total);
    jump.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#jump();
    });
    this.number.addEventListener("focus", () => this.number.select());
    this.number.addEventListener("change", () => this.#jump());
    this.all = button(t("document.pages"), () => this.#openAll(), "button--small");
    const many = pages.length > 1;
    this.node = el(
      "div",
      { class: "document__tools", role: "toolbar", "aria-label": t("document.tools") },
      many && el("div", { class: "pages" }, this.all, jump),
      ...foldedTools([el("div", { class: "document__zoom" }, this.smaller, this.larger), this.finding, this.reading]),
    );
    for (const page of pages) {
      for (const node of [page.sheet, page.section]) {
        this.#inSight.set(node, page);
        this.#watch.observe(node);
      }
    }
    this.#current = pages[0] ?? null;
    this.refresh();
  }

  /** The page in the middle of the window. */
  get current() {
    return this.#current;
  }

  zoomed(isFirst, isLast) {
    this.smaller.disabled = isFirst;
    this.larger.disabled = isLast;
  }

  /** Pages of a document that is not there do not count. */
  refresh() {
    const there = this.#there();
    this.total.textContent = t("document.of_pages", { count: there.length });
    if (!there.includes(this.#current)) this.#current = there[0] ?? null;
    if (document.activeElement !== this.number) this.number.value = String(there.indexOf(this.#current) + 1);
  }

  /** The number of a page among all that are there, from 1. */
  numberOf(page) {
    return this.#there().indexOf(page) + 1;
  }

  #there() {
    return this.pages.filter((page) => page.isThere());
  }

  #seen(entries) {
    for (const { target, isIntersecting } of entries) if (isIntersecting) this.#current = this.#inSight.get(target);
    this.refresh();
  }

  #jump() {
    const there = this.#there();
    const number = Number.parseInt(this.number.value, 10);
    const page = there[Math.max(1, Math.min(there.length, number || 1)) - 1];
    if (page && page !== this.#current) this.acts.show(page);
    this.number.value = String(there.indexOf(page) + 1);
  }

  #openAll() {
    const dialog = el("dialog", { class: "dialog pages__all", "aria-label": t("document.pages") });
    const entries = this.#there().map((page, index) => {
      const mine = page.places.filter(({ isMine }) => isMine).length;
      const words = mine ? `, ${count("document.fields_here", mine)}` : "";
      const picture = el("img", { src: `${page.page.url}?width=${SMALL}`, alt: "", loading: "lazy", width: SMALL });
      picture.style.aspectRatio = `${page.page.width} / ${page.page.height}`;
      const choice = el("button", { type: "button", class: "pages__one" }, picture, el("span", {}, t("document.page_alone", { number: index + 1 }) + words));
      if (page === this.#current) choice.setAttribute("aria-current", "page");
      choice.addEventListener("click", () => {
        dialog.close();
        this.acts.show(page, calm() ? "auto" : "instant");
      });
      return el("li", {}, choice);
    });
    const close = button(t("document.close"), () => dialog.close(), "button--small");
    dialog.append(el("div", { class: "pages__head" }, el("h2", {}, t("document.pages")), close), el("ul", { class: "pages__list", role: "list" }, entries));
    dialog.addEventListener("close", () => {
      dialog.remove();
      this.all.focus();
    });
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
  }
}

function labelled(sign, words, onClick) {
  const made = button(sign, onClick, "button--small");
  made.setAttribute("aria-label", words);
  return made;
}

function toggle(words, onChange) {
  const made = button(
    words,
    () => {
      const isOn = made.getAttribute("aria-pressed") !== "true";
      made.setAttribute("aria-pressed", String(isOn));
      onChange(isOn);
    },
    "button--small",
  );
  made.setAttribute("aria-pressed", "false");
  return made;
}
