// The document as text that flows: for phones and for whoever listens. Fields stand where they are on paper, as links to their
// questions. Pages come when they are near, as their pictures do.
import { el } from "../dom.js";
import { t } from "../texts.js";
import { partsOf, placesByWord, rowsOf } from "./document_text.js";
import { fieldWords } from "./field_words.js";
import { notesOf } from "./notes.js";
import { partOf } from "./text_layer.js";

export class ReadingView {
  #near = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: "150% 0px" });
  #pages = new Map(); // section -> the page it shows

  /** `pages`: `{ document, text, number, places }` of each page; `onRead` gets each page with its words when they are there. */
  constructor(pages, state, onPick, onRead) {
    Object.assign(this, { state, onPick, onRead });
    this.node = el("div", { class: "reading", hidden: true });
    let name = null;
    for (const page of pages) {
      if (page.document.name !== name) this.node.append(el("h3", { class: "reading__document" }, page.document.name));
      name = page.document.name;
      const heading = t("document.page_number", { number: page.number, count: page.document.pages.length });
      const section = el("section", { class: "reading__page" }, el("h4", { class: "reading__number" }, heading));
      page.section = section;
      this.#pages.set(section, page);
      this.node.append(section);
    }
  }

  open(isOpen) {
    this.node.hidden = !isOpen;
    for (const section of this.#pages.keys()) {
      if (isOpen) this.#near.observe(section);
      else this.#near.unobserve(section);
    }
  }

  /** The page with all its words, as soon as they are there. */
  ready(page) {
    page.reading ??= this.#fill(page);
    return page.reading;
  }

  #seen(entries) {
    for (const { target, isIntersecting } of entries) if (isIntersecting) this.ready(this.#pages.get(target));
  }

  async #fill(page) {
    const content = await page.text.page(page.number);
    if (!content) {
      page.section.append(el("p", { class: "reading__note" }, t("reading.failed")));
      return;
    }
    const flow = el("div", { class: "reading__text", lang: page.text.language, dir: "auto" });
    const words = [];
    const { beside, below } = placesByWord(content, page.places);
    const putFields = (found, index, node) => {
      for (const place of found.get(index) ?? []) {
        const link = fieldWords(place, this.state, this.onPick);
        if (!link) continue;
        page.fields.push({ node: link, place });
        node.append(link, " ");
      }
    };
    const put = (block, node) => {
      block.lines.forEach((line, number) => {
        line.words.forEach((word, index) => {
          const span = el("span", {}, word[4]);
          words.push(span);
          node.append(span);
          const isBroken = index === line.words.length - 1 && number < block.lines.length - 1 && /\p{L}-$/u.test(word[4]);
          if (!isBroken) node.append(" ");
          putFields(beside, words.length - 1, node);
        });
      });
      return node;
    };
    let told = -1; // the words below which fields were put
    const putBelow = () => {
      const node = el("p");
      for (; told < words.length; told += 1) putFields(below, told, node);
      if (node.hasChildNodes()) flow.append(node);
    };
    putBelow();
    for (const { kind, blocks } of partsOf(content)) {
      if (kind === "list") flow.append(el("ul", { role: "list" }, blocks.map((block) => put(block, el("li")))));
      else if (kind === "table") flow.append(tableOf(blocks, put));
      else flow.append(put(blocks[0], partOf(kind)));
      putBelow();
    }
    page.section.append(flow, ...notesOf(page.text, content).map((note) => el("p", { class: "reading__note" }, note)));
    if (content.recognised) page.section.append(recognised(content.recognised));
    this.onRead(page, words);
  }
}

function tableOf(blocks, put) {
  const row = (cells) => el("tr", {}, cells.map((cell) => put(cell, el(cell.kind))));
  return el("div", { class: "reading__table", tabindex: 0, role: "group", "aria-label": t("reading.table") }, el("table", {}, rowsOf(blocks).map(row)));
}

/** What a program, or the sender, has written behind the picture; nobody sees it there, so it is shown on demand only. */
const recognised = (words) =>
  el("details", { class: "reading__recognised" }, el("summary", {}, t("reading.recognised")), el("p", { dir: "auto" }, words));
