// The words of a page over its picture, each in its place and not to be seen: they can be selected, copied, found and read out.
// They come from the sender's file, so they are text and never anything else.
import { el } from "../dom.js";
import { t } from "../texts.js";
import { partsOf, placesByWord, rowsOf } from "./document_text.js";
import { fieldWords } from "./field_words.js";
import { notesOf } from "./notes.js";

const UNIT = 100; // ten-thousandths to percents
const RULER = 100; // pixels

let ruler = null;

/** The layer of a page and its words: `{ node, words, fields }`. `places`: fields on it, as `{ field, area }`. */
export function textLayer(text, page, size, places, state, onPick) {
  const layer = el("div", { class: "sheet__text", lang: text.language, dir: "auto" });
  const words = [];
  const fields = [];
  const { beside, below } = placesByWord(page, places);
  const putFields = (found, index, node) => {
    for (const place of found.get(index) ?? []) {
      const link = fieldWords(place, state, onPick);
      if (!link) continue;
      link.classList.add("sheet__field");
      putAt(link, [place.area.x * 10_000, place.area.y * 10_000, place.area.w * 10_000, place.area.h * 10_000]);
      fields.push({ node: link, place });
      node.append(link, " ");
    }
  };
  const putBlock = (block, node) => {
    for (const line of block.lines) {
      for (const word of line.words) {
        const span = el("span", { class: "sheet__word" }, `${word[4]} `);
        setPlace(span, word, line, size);
        node.append(span);
        words.push(span);
        putFields(beside, words.length - 1, node);
      }
    }
    return node;
  };
  let told = -1; // the words below which fields were put
  const putBelow = () => {
    const node = el("p");
    for (; told < words.length; told += 1) putFields(below, told, node);
    if (node.hasChildNodes()) layer.append(node);
  };
  putBelow();
  for (const { kind, blocks } of partsOf(page)) {
    if (kind === "list") {
      layer.append(el("div", { role: "list" }, blocks.map((block) => putBlock(block, el("div", { role: "listitem" })))));
    } else if (kind === "table") {
      const row = (cells) => el("div", { role: "row" }, cells.map((cell) => putBlock(cell, cellOf(cell))));
      layer.append(el("div", { role: "table" }, rowsOf(blocks).map(row)));
    } else {
      layer.append(putBlock(blocks[0], partOf(kind)));
    }
    putBelow();
  }
  for (const note of notesOf(text, page)) layer.append(el("p", { class: "visually-hidden" }, note));
  return { node: layer, words, fields };
}

/** Headings of the document come below those of the page. */
export function partOf(kind) {
  const level = /^h([1-6])$/.exec(kind)?.[1];
  return level ? el("div", { role: "heading", "aria-level": Number(level) + 3 }) : el("p");
}

const cellOf = ({ kind }) => el("div", { role: kind === "th" ? "columnheader" : "cell" });

function putAt({ style }, [left, top, width, height]) {
  style.left = `${left / UNIT}%`;
  style.top = `${top / UNIT}%`;
  style.width = `${width / UNIT}%`;
  style.height = `${height / UNIT}%`;
}

/** As long as the word on paper: the letters themselves are of another font. */
function setPlace(span, [left, top, width, height, word], { angle = 0, vertical = false }, size) {
  const { style } = span;
  const toWidth = size.height / size.width; // of the sheet, in which both are measured here
  const [across, down] = [width / UNIT, (height / UNIT) * toWidth];
  if (vertical) {
    span.classList.add("sheet__word--vertical");
    putAt(span, [left, top, width, height]);
    style.fontSize = `${across}cqw`;
    style.transform = `scaleY(${(down / (across * [...word].length)).toFixed(3)})`;
    return;
  }
  const [length, high] = unturned(across, down, angle);
  style.fontSize = `${high.toFixed(3)}cqw`;
  const natural = (widthOf(word) / RULER) * high;
  const stretch = natural > 0 ? (length / natural).toFixed(3) : 1;
  if (!angle) {
    style.left = `${left / UNIT}%`;
    style.top = `${top / UNIT}%`;
    style.transform = `scaleX(${stretch})`;
    return;
  }
  style.left = `${(left + width / 2) / UNIT}%`;
  style.top = `${(top + height / 2) / UNIT}%`;
  style.transformOrigin = "center";
  style.transform = `translate(-50%, -50%) rotate(${angle}deg) scaleX(${stretch})`;
}

/** Length and height of a word from the upright box around it. */
function unturned(across, down, angle) {
  const turn = (Math.abs(angle) % 180) * (Math.PI / 180);
  const [cos, sin] = [Math.abs(Math.cos(turn)), Math.abs(Math.sin(turn))];
  const both = cos * cos - sin * sin;
  if (Math.abs(both) < 0.2) return [Math.hypot(across, down) * 0.9, Math.min(across, down) * 0.4];
  return [Math.max((across * cos - down * sin) / both, 0.01), Math.max((down * cos - across * sin) / both, 0.01)];
}

function widthOf(word) {
  if (!ruler) {
    ruler = document.createElement("canvas").getContext("2d");
    ruler.font = `${RULER}px Helvetica, Arial, "Liberation Sans", "Noto Sans", sans-serif`;
  }
  return ruler.measureText(word).width;
}
