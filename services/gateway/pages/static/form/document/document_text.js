// The text of a document as the server reads it from the very file: piece by piece, each page once.
import { pause } from "../server/calls.js";

const PIECE = 10; // pages that the server gives at most
const AGAIN = [1_000, 4_000];

export class DocumentText {
  #pages = new Map(); // number -> page
  #asked = new Map(); // first page of a piece -> promise

  constructor(document) {
    this.document = document;
    this.language = null;
    this.footer = "";
  }

  /** The text of a page; null when it cannot be had now. */
  async page(number) {
    const first = number - ((number - 1) % PIECE);
    if (!this.#pages.has(number)) await this.#piece(first);
    // A piece of long pages is shorter: what it lacks begins another one.
    if (!this.#pages.has(number)) await this.#piece(number);
    return this.#pages.get(number) ?? null;
  }

  #piece(first) {
    if (!this.#asked.has(first)) {
      const asked = this.#fetch(first).catch(() => this.#asked.delete(first));
      this.#asked.set(first, asked);
    }
    return this.#asked.get(first);
  }

  async #fetch(first) {
    for (const wait of [...AGAIN, null]) {
      const answer = await fetch(`${this.document.text_url}/${first}`, { headers: { Accept: "application/json" } }).catch(() => null);
      if (answer?.ok) {
        const { language, pages, footer } = await answer.json();
        this.language = language;
        this.footer = footer ?? "";
        for (const page of pages) this.#pages.set(page.number, page);
        return;
      }
      if (wait === null || (answer && answer.status < 500 && answer.status !== 429)) throw new Error(`status ${answer?.status}`);
      await pause(wait);
    }
  }
}

/** The parts of a page in order, with lists and tables as one part: `{ kind, blocks }` of p, h1 to h6, list and table. */
export function partsOf(page) {
  const parts = [];
  for (const block of page.blocks ?? []) {
    const kind = block.kind === "li" ? "list" : block.kind === "th" || block.kind === "td" ? "table" : block.kind;
    const last = parts.at(-1);
    const isSame = kind === "table" ? block.group && last?.blocks[0].group === block.group : true;
    if ((kind === "list" || kind === "table") && last?.kind === kind && isSame) last.blocks.push(block);
    else parts.push({ kind, blocks: [block] });
  }
  return parts;
}

/** The cells of a table by rows. */
export function rowsOf(blocks) {
  const rows = [];
  for (const block of blocks) {
    if (rows.length && (rows.at(-1)[0].row ?? 0) === (block.row ?? 0)) rows.at(-1).push(block);
    else rows.push([block]);
  }
  return rows;
}

/** All words of a page in order: `[left, top, width, height, text]`. */
export const wordsOf = (page) => (page.blocks ?? []).flatMap(({ lines }) => lines.flatMap(({ words }) => words));

/**
 * Where each place of a field is read: `beside` a word on its line, else `below` the part of the page that holds the last word
 * above it. Both lead from the number of a word in `wordsOf` (-1: before all) to places, `{ area, ... }`.
 */
export function placesByWord(page, places) {
  const words = wordsOf(page);
  const found = { beside: new Map(), below: new Map() };
  for (const place of places) {
    const { x, y, w, h } = place.area;
    const [left, top, bottom] = [x * 10_000, y * 10_000, (y + h) * 10_000];
    let beside = -1;
    let above = -1;
    words.forEach(([wordLeft, wordTop, wordWidth, wordHeight], index) => {
      const middle = wordTop + wordHeight / 2;
      const isOnLine = middle > top - wordHeight / 2 && middle < bottom + wordHeight / 2;
      if (isOnLine && wordLeft + wordWidth / 2 < left + (w * 10_000) / 2) {
        if (beside < 0 || wordLeft >= words[beside][0]) beside = index;
      } else if (middle <= top) above = index;
    });
    const [group, word] = beside >= 0 ? [found.beside, beside] : [found.below, above];
    if (!group.has(word)) group.set(word, []);
    group.get(word).push(place);
  }
  return found;
}
