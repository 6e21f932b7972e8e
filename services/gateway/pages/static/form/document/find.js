// Find in the document: whatever the case and the accents, over lines, in all pages.
import { button, el } from "../dom.js";
import { t } from "../texts.js";
import { wordsOf } from "./document_text.js";

const PAUSE = 250; // milliseconds without a key
const MOST = 1_000; // places
const WITHOUT_BLANKS = /[\u2e80-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]/u;

const folded = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .replace(/ß/g, "ss")
    .replace(/ς/g, "σ");

export class Find {
  #places = []; // { page, first, last }: words of a page, by number
  #current = -1;
  #run = 0;
  #marked = [];

  /** `pages`: `{ text, number, ... }`; `show(page)` gives the nodes of its words, in sight. */
  constructor(pages, show) {
    Object.assign(this, { pages, show });
    this.input = el("input", { type: "search", class: "find__words", "aria-label": t("find.label"), enterkeyhint: "search", maxlength: 100 });
    this.status = el("p", { class: "find__status", role: "status" });
    this.previous = button("‹", () => this.#go(-1), "button--small");
    this.next = button("›", () => this.#go(1), "button--small");
    this.previous.setAttribute("aria-label", t("find.previous"));
    this.next.setAttribute("aria-label", t("find.next"));
    const form = el("form", { class: "find", role: "search", hidden: true }, this.input, this.previous, this.next, this.status);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#go(1);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.shiftKey) {
        event.preventDefault();
        this.#go(-1);
      }
    });
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#search(), PAUSE);
    });
    this.node = form;
    this.#buttons();
  }

  open(isOpen) {
    this.node.hidden = !isOpen;
    if (isOpen) this.input.focus();
    else this.#unmark();
  }

  /** The words of a page have come, or have come anew. */
  words(page) {
    if (!this.node.hidden && this.#places[this.#current]?.page === page) this.#mark();
  }

  async #search() {
    const run = ++this.#run;
    this.#unmark();
    this.#places = [];
    this.#current = -1;
    this.#buttons();
    const sought = folded(this.input.value).replace(/\s+/g, " ").trim();
    this.status.textContent = sought ? t("find.searching") : "";
    if (!sought) return;
    let missing = 0;
    for (const page of this.pages) {
      if (page.section?.dataset.away || this.#places.length >= MOST) continue;
      const content = await page.text.page(page.number);
      if (run !== this.#run) return;
      if (!content) missing += 1;
      else if (page.isThere()) this.#places.push(...found(content, sought).map((place) => ({ page, ...place })));
      this.#buttons();
      if (this.#places.length && this.#current < 0) await this.#go(1);
    }
    if (run !== this.#run) return;
    this.#tell();
    if (missing) this.status.textContent += ` ${t("find.incomplete")}`;
  }

  async #go(step) {
    if (!this.#places.length) return;
    this.#current = (this.#current + step + this.#places.length) % this.#places.length;
    this.#tell();
    await this.#mark(true);
  }

  async #mark(isNew = false) {
    const place = this.#places[this.#current];
    if (!place) return;
    const nodes = await this.show(place.page);
    if (place !== this.#places[this.#current] || !nodes) return;
    this.#unmark();
    this.#marked = nodes.slice(place.first, place.last + 1);
    for (const node of this.#marked) node.classList.add("found");
    if (isNew) this.#marked[0]?.scrollIntoView({ block: "center", inline: "nearest" });
  }

  #unmark() {
    for (const node of this.#marked) node.classList.remove("found");
    this.#marked = [];
  }

  #tell() {
    const place = this.#places[this.#current];
    const values = { number: this.#current + 1, count: this.#places.length, page: place?.page.number };
    this.status.textContent = place ? t("find.place", values) : t("find.none");
  }

  #buttons() {
    for (const each of [this.previous, this.next]) each.disabled = !this.#places.length;
  }
}

/** Where `sought` is: the numbers of the first and the last word. */
function found(page, sought) {
  const words = wordsOf(page).map(([, , , , text]) => folded(text));
  const blank = WITHOUT_BLANKS.test(sought) ? "" : " ";
  const starts = [];
  let length = 0;
  for (const word of words) {
    starts.push(length);
    length += word.length + blank.length;
  }
  const text = words.join(blank);
  const wanted = blank ? sought : sought.replaceAll(" ", "");
  const places = [];
  for (let at = text.indexOf(wanted); at >= 0 && places.length < MOST; at = text.indexOf(wanted, at + wanted.length)) {
    places.push({ first: wordAt(starts, at), last: wordAt(starts, at + wanted.length - 1) });
  }
  return places;
}

function wordAt(starts, position) {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (starts[middle] <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}
