// A typed name in the styles that there are, drawn by the server as it will be sealed.
import { post, TIMEOUT } from "../../server/calls.js";
import { el } from "../../dom.js";
import { t } from "../../texts.js";

const NUMBER = 5;
const PAUSE = 250; // milliseconds without a change, then it is drawn

export class Styles {
  #text = "";
  #shown = "";
  #timer = null;
  #asked = null; // what is under way can be cancelled by this

  /** `chosen` from 1; `onChoose(style)`; `onDrawn(error)` when the pictures have come, or cannot be made. */
  constructor({ id, chosen, onChoose, onDrawn }) {
    Object.assign(this, { chosen, onDrawn });
    this.pictures = Array.from({ length: NUMBER }, () => el("img", { class: "styles__picture", alt: "" }));
    const rows = this.pictures.map((picture, index) => {
      const style = index + 1;
      const input = el("input", {
        type: "radio",
        class: "choice__input",
        name: `${id}-style`,
        id: `${id}-style-${style}`,
        value: String(style),
        checked: style === chosen,
        on: { change: () => onChoose((this.chosen = style)) },
      });
      return el("label", { class: "styles__one", for: input.id }, input, el("span", { class: "styles__name" }, t("signature.style", { number: style })), picture);
    });
    this.node = el("fieldset", { class: "styles" }, el("legend", { class: "hint" }, t("signature.styles")), rows);
    this.node.hidden = true;
  }

  /** The picture of the chosen style, "" while it is not that of what is typed. */
  get picture() {
    return this.#shown === this.#text && this.#text ? this.pictures[this.chosen - 1].src : "";
  }

  /** Shows `text`, at once or as soon as nothing more is typed. */
  show(text, now = false) {
    this.#text = text.trim();
    this.node.hidden = !this.#text;
    this.node.classList.toggle("styles--late", this.#shown !== this.#text);
    this.#cancel();
    if (this.#text && this.#shown !== this.#text) this.#timer = setTimeout(() => this.#draw(this.#text), now ? 0 : PAUSE);
  }

  stop() {
    this.#cancel();
    this.onDrawn = () => {};
  }

  /** Nobody waits any more for what was typed before. */
  #cancel() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.#asked = null;
  }

  async #draw(text) {
    const asked = (this.#asked = new AbortController());
    const timer = setTimeout(() => asked.abort(), TIMEOUT);
    let problem = null;
    try {
      const { pictures } = await post("signature_styles", { text }, { signal: asked.signal });
      if (this.#asked !== asked) return; // cancelled
      this.#shown = text; // from here on the pictures are those of this text
      await Promise.all(this.pictures.map((picture, index) => set(picture, pictures[index])));
    } catch (error) {
      problem = error;
    } finally {
      clearTimeout(timer);
    }
    if (this.#asked !== asked) return;
    this.node.hidden = problem !== null; // it can be signed all the same, as it was chosen before
    this.node.classList.remove("styles--late");
    this.onDrawn(problem);
  }
}

async function set(picture, src) {
  picture.src = src;
  await picture.decode().catch(() => {});
}
