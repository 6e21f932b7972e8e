// The pages of the documents with the fields on them, and their words behind. The boxes are for the eyes and for tapping: in the
// words each field is a link to its question in the form, where everything is named and answered.
import { isEmpty } from "../values/empty.js";
import { calm, el } from "../dom.js";
import { shownText } from "../values/format.js";
import { isStep } from "../form_state.js";
import { t } from "../texts.js";
import { DocumentText } from "./document_text.js";
import { tell } from "./field_words.js";
import { Find } from "./find.js";
import { PagePictures } from "./page_pictures.js";
import { PageTools } from "./page_tools.js";
import { ReadingView } from "./reading_view.js";
import { textLayer } from "./text_layer.js";
import { ValuePictures } from "./value_pictures.js";

const ZOOMS = [1, 1.75, 2.5, 3.5];
const NARROW = 600; // pixels; below, a page that fits is too small to be read
const PICTURES = new Set(["signature", "initials", "image", "stamp"]);
const FAR = 3; // heights of the window
const MARGIN = 12;
const SHRINKINGS = [1, 1 / 1.4, 1 / 1.9];
const NEAR = "60% 0px"; // heights of the window in which words are laid over the pages

export class DocumentView {
  #boxes = new Map(); // field uuid -> [{node, area, drawn}]
  #sections = new Map(); // document -> its element
  #current = null;
  #pages = []; // of all documents, in order
  #isReading = false;
  #zoom = 0;
  #zoomChosen = false;

  constructor(place, state, onPick) {
    this.state = state;
    this.onPick = onPick;
    this.place = place;
    this.pictures = new ValuePictures(state);
    this.pagePictures = new PagePictures();
    this.nearness = new IntersectionObserver((entries) => this.#near(entries), { rootMargin: NEAR });
    this.scroller = el("div", { class: "document__pages" });
    for (const document of state.form.documents) this.#addDocument(document);
    this.reading = new ReadingView(this.#pages, state, onPick, (page, words) => {
      page.readWords = words;
      this.find.words(page);
    });
    this.find = new Find(this.#pages, (page) => this.#wordsOf(page));
    this.tools = new PageTools(this.#pages, {
      zoom: (step) => this.#chooseZoom(this.#zoom + step),
      read: (isOpen) => this.#read(isOpen),
      find: (isOpen) => this.find.open(isOpen),
      show: (page) => this.#showPage(page),
    });
    this.top = el("div", { class: "document__top" }, this.tools.node, this.find.node);
    place.append(this.top, this.scroller, this.reading.node);
    this.#setZoom(0);
    for (const field of state.fields) this.refresh(field);
    this.#showDocuments();
    state.addEventListener("changed", () => {
      this.#showDocuments();
      this.state.fields.forEach((field) => this.refresh(field));
      for (const { fields } of this.#pages) for (const { node, place: where } of fields) tell(node, where, this.state);
    });
    state.addEventListener("sketched", ({ detail }) => this.refresh(detail));
    this.pagePictures.ready.then(() => this.#pages.forEach(({ sheet }) => this.nearness.observe(sheet)));
  }

  /** Draws what a field holds now. */
  refresh(field) {
    for (const box of this.#boxes.get(field.uuid) ?? []) {
      box.node.hidden = !this.state.isShown(field);
      box.node.classList.toggle("box--filled", !isEmpty(this.state.value(field.uuid)));
      box.node.classList.toggle("box--required", this.state.isRequired(field));
      box.node.replaceChildren(...this.#content(field, box.area));
      fit(box.node);
      this.pictures.look(box.drawn);
    }
  }

  /** Marks `field` as the one that is asked for, and brings it into sight. */
  show(field) {
    for (const box of this.#boxes.get(this.#current) ?? []) box.node.classList.remove("box--current");
    this.#current = field?.uuid ?? null;
    for (const box of this.#boxes.get(this.#current) ?? []) box.node.classList.add("box--current");
    if (this.#isReading) {
      this.#showInText(field);
      return;
    }
    const boxes = this.#inSight();
    if (!this.#zoomChosen && this.scroller.clientWidth < NARROW) this.#setZoom(boxes.length ? 1 : 0);
    if (boxes.length) this.#bringIntoSight(boxes[0].node);
  }

  /** Marks the fields with these uuids as changed by the sender. */
  mark(uuids) {
    for (const uuid of uuids) for (const { node } of this.#boxes.get(uuid) ?? []) node.classList.add("box--changed");
  }

  /** Again into sight, when the form has changed its size. */
  follow() {
    const boxes = this.#inSight();
    if (boxes.length && !this.#isReading) this.#bringIntoSight(boxes[0].node, "auto");
  }

  /** The places of the field that is asked for, on documents that are there. */
  #inSight() {
    return (this.#boxes.get(this.#current) ?? []).filter(({ node }) => !node.closest("[hidden]"));
  }

  /** A document is there only while its conditions hold. */
  #showDocuments() {
    for (const [document, section] of this.#sections) section.hidden = !this.state.isShown(document);
    for (const page of this.#pages) page.section.hidden = !page.isThere();
    this.tools.refresh();
  }

  #near(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.#layer(this.#pages.find(({ sheet }) => sheet === target));
    }
  }

  /** Lays the words of a page over its picture, once. */
  #layer(page) {
    page.layer ??= page.text.page(page.number).then((content) => {
      if (!content) {
        page.layer = null;
        return;
      }
      const { node, words, fields } = textLayer(page.text, content, page.page, page.places, this.state, this.onPick);
      page.words = words;
      page.fields.push(...fields);
      page.sheet.querySelector(".sheet__picture, .sheet__failed").after(node);
      this.find.words(page);
    });
    return page.layer;
  }

  /** The nodes of the words of a page as it is shown now. */
  async #wordsOf(page) {
    if (this.#isReading) {
      await this.reading.ready(page);
      return page.readWords;
    }
    await this.#layer(page);
    return page.words;
  }

  #read(isOpen) {
    const page = this.tools.current;
    this.#isReading = isOpen;
    this.place.classList.toggle("document--reading", isOpen);
    this.scroller.hidden = isOpen;
    this.reading.open(isOpen);
    if (page) this.#showPage(page);
    if (page) this.find.words(page);
  }

  #showPage(page) {
    const node = this.#isReading ? page.section : page.sheet;
    scrollBy({ top: node.getBoundingClientRect().top - this.#below() - MARGIN, behavior: "auto" });
  }

  /** Where what lies over the top of the document ends. */
  #below() {
    const header = document.querySelector(".top").getBoundingClientRect();
    return Math.max(0, header.bottom, this.top.getBoundingClientRect().bottom);
  }

  /** In the text that flows: to the page, and to the field as soon as the words are there. */
  async #showInText(field) {
    const page = this.#pages.find(({ places }) => places.some((where) => where.field === field));
    if (!page?.isThere()) return;
    await this.reading.ready(page);
    const link = page.fields.find(({ node, place: where }) => where.field === field && page.section.contains(node));
    if (this.#isReading && link && this.#current === field.uuid) link.node.scrollIntoView({ block: "center", behavior: "auto" });
  }

  #chooseZoom(zoom) {
    this.#zoomChosen = true;
    this.#setZoom(zoom);
    this.follow();
  }

  #setZoom(zoom) {
    this.#zoom = Math.max(0, Math.min(ZOOMS.length - 1, zoom));
    this.scroller.style.setProperty("--zoom", ZOOMS[this.#zoom]);
    this.tools.zoomed(this.#zoom === 0, this.#zoom === ZOOMS.length - 1);
    this.#fitAll();
  }

  #fitAll() {
    for (const boxes of this.#boxes.values()) for (const { node } of boxes) fit(node);
  }

  #addDocument(document) {
    const link = document.url
      ? el("a", { class: "document__pdf", href: document.url, target: "_blank", rel: "noopener" }, t("document.pdf"))
      : null;
    const text = new DocumentText(document);
    const pages = document.pages.map((page, index) => this.#page(document, page, index + 1, text));
    const alone = this.state.form.documents.length === 1;
    const name = el("h3", { class: alone ? "visually-hidden" : "paper__name" }, document.name);
    const section = el("section", { class: "paper" }, name, pages, link);
    this.#sections.set(document, section);
    this.scroller.append(section);
  }

  #page(document, page, number, text) {
    const sheet = el("div", { class: "sheet" });
    sheet.style.aspectRatio = `${page.width} / ${page.height}`;
    const places = [];
    this.#pages.push({ document, page, number, sheet, text, places, fields: [], isThere: () => this.state.isShown(document) });
    this.pagePictures.add(sheet, document, page, number);
    // 11 points on a page of 595, as the sealed file has it (peer facts 4.2).
    sheet.style.setProperty("--point", `${100 / page.width}cqw`);
    const usual = Math.floor((Math.min(page.width, page.height) / 595) * 11);
    for (const field of this.state.fields) {
      for (const [index, area] of field.areas.entries()) {
        const there = area.page === number && (area.attachment_uuid || this.state.form.documents[0].uuid) === document.uuid;
        if (!there) continue;
        places.push({ field, area, isMine: isStep(field) });
        this.#addBox(sheet, field, index, usual);
      }
    }
    return sheet;
  }

  #addBox(sheet, field, index, usualSize) {
    const area = field.areas[index];
    const mine = isStep(field);
    const kind = `box box--${field.type} ${mine ? "box--mine" : "box--fixed"}`;
    // What is filled in is told elsewhere, where it is asked for; the place of a duty stamp is told here alone.
    const told = field.type === "dutystamp" ? { role: "img", "aria-label": t("document.dutystamp") } : { "aria-hidden": true };
    const node = el("div", { class: kind, ...told, "data-field": field.uuid });
    if (mine) node.addEventListener("click", () => this.onPick(field));
    const { style } = node;
    style.left = `${area.x * 100}%`;
    style.top = `${area.y * 100}%`;
    style.width = `${area.w * 100}%`;
    style.height = `${area.h * 100}%`;
    style.setProperty("--size", Number(field.preferences?.font_size) || usualSize);
    lookOf(node, field);
    if (!this.#boxes.has(field.uuid)) this.#boxes.set(field.uuid, []);
    sheet.append(node);
    this.#boxes.get(field.uuid).push({ node, area, drawn: this.pictures.add(node, field, index, sheet) });
  }

  #content(field, area) {
    const value = this.state.value(field.uuid);
    if (field.type === "strikethrough") return [strike(area)];
    if (field.type === "dutystamp") return [el("span", { class: "box__hint" }, t("kind.dutystamp"))];
    if (isEmpty(value) && this.state.sketches.has(field.uuid)) return [sketch(this.state.sketches.get(field.uuid)())];
    if (isEmpty(value) && !field.display) return isStep(field) ? [hint(field)] : [];
    if (PICTURES.has(field.type)) return this.#pictureOf(value);
    if (field.type === "file") return this.#filesOf(value);
    if (field.type === "checkbox") return value ? [tick()] : [];
    if (area.option !== null && area.option !== undefined) {
      return [value].flat().includes(area.option) ? [tick()] : [];
    }
    const isOwn = field.mine && isStep(field);
    const text = (isOwn ? null : field.display) ?? shownText(field, value, this.state.locale, this.state.form.time_zone);
    if (field.type === "payment" && field.preferences?.payment_url) return [payLink(field, text)];
    return field.type === "cells" && area.cell_w ? cells(text, field, area) : [el("span", { class: "box__text" }, text)];
  }

  #pictureOf(value) {
    const attachment = this.state.attachments.get(value);
    return attachment ? [el("img", { class: "box__picture", src: attachment.url, alt: "" })] : [];
  }

  #filesOf(value) {
    const names = [value].flat().map((uuid) => this.state.attachments.get(uuid)?.filename ?? "");
    return [el("span", { class: "box__text" }, names.join(", "))];
  }

  #bringIntoSight(node, wish = calm() ? "auto" : "smooth") {
    const panel = document.getElementById("panel").getBoundingClientRect();
    const box = node.getBoundingClientRect();
    const stacked = panel.left < box.right && panel.right > box.left && panel.top > 0;
    const top = this.#below();
    const bottom = stacked ? Math.min(panel.top, innerHeight) : innerHeight;
    const middle = (top + Math.max(bottom, top + 40)) / 2;
    const distance = box.top + box.height / 2 - middle;
    const behavior = Math.abs(distance) > FAR * innerHeight ? "auto" : wish; // pages that rush past help nobody
    scrollBy({ top: distance, behavior });
    const view = this.scroller.getBoundingClientRect();
    // Where the page is wider than the window: as far to the left as shows the whole field, because its label is there.
    const leftmost = Math.max(box.right + MARGIN - view.right, -this.scroller.scrollLeft);
    const shift = Math.min(leftmost, box.left - MARGIN - view.left);
    this.scroller.scrollBy({ left: shift, behavior });
  }
}

function lookOf(node, field) {
  const { font, font_type: face = "", color, background, align, valign } = field.preferences ?? {};
  const families = { Times: "times", Courier: "courier", Helvetica: "helvetica" };
  node.classList.add(`font-${families[font] ?? "helvetica"}`);
  if (face.includes("bold")) node.classList.add("font-bold");
  if (face.includes("italic")) node.classList.add("font-italic");
  for (const [what, value] of Object.entries({ color, background, align, valign })) {
    if (/^[a-z]+$/.test(value ?? "")) node.classList.add(`${what}-${value}`);
  }
}

/** What an empty field of one's own says: where to sign, else its name when there is room. */
function hint(field) {
  const words = { signature: t("document.sign_here"), initials: t("document.initials_here") };
  return el("span", { class: "box__hint" }, words[field.type] ?? (field.type === "checkbox" ? "" : field.label));
}

function sketch(node) {
  node.classList.add("box__picture", "box__picture--sketch");
  return node;
}

/** What is to be paid leads to where it is paid; the form has the same link for the keyboard. */
const payLink = ({ preferences }, text) =>
  el("a", { class: "box__text", href: preferences.payment_url, target: "_blank", rel: "noopener noreferrer", tabindex: -1 }, text);

const tick = () => el("span", { class: "box__tick" });

function cells(text, field, area) {
  const count = Math.max(1, Math.round(area.w / area.cell_w));
  const characters = [...text];
  const first = field.preferences?.align === "right" ? Math.max(0, count - characters.length) : 0;
  return characters.map((character, index) => {
    const cell = el("span", { class: "box__cell" }, character);
    cell.style.left = `${((first + index) / count) * 100}%`;
    cell.style.width = `${100 / count}%`;
    return cell;
  });
}

function strike(area) {
  return el("span", { class: area.h < 0.04 ? "box__line" : "box__cross" });
}

/** As on paper: text that is higher than its area is made smaller in two steps. */
function fit(node) {
  const text = node.querySelector(".box__text");
  if (!text) return;
  for (const shrinking of SHRINKINGS) {
    text.style.setProperty("--shrinking", shrinking);
    if (text.scrollHeight <= node.clientHeight + 1 && text.scrollWidth <= node.clientWidth + 1) break;
  }
}
