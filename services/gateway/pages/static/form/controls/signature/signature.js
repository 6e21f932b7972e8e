// Signatures and initials: drawn, typed or uploaded.
import { newRequestId, page, persistently, post, Refused } from "../../server/calls.js";
import { announce, button, el } from "../../dom.js";
import { count, firstOf, locale, t } from "../../texts.js";
import { PICTURE_TYPES, send } from "../files.js";
import { Incomplete } from "../incomplete.js";
import { byPhone } from "./by_phone.js";
import { initials } from "./initials.js";
import { Pad } from "./pad.js";
import { forAllBox, namesOf, placesLike, waysOf, wordsFor } from "./places.js";
import { Styles } from "./styles.js";

const WAITS = [1_000, 3_000];
const LONGEST = 100; // characters of what is typed

export function signature(field, context) {
  return new SignatureControl(field, context);
}

class SignatureControl {
  constructor(field, context) {
    this.field = field;
    this.context = context;
    this.memory = context.memory; // what was drawn or typed and not sent survives going elsewhere and coming back
    this.memory.strokes ??= [];
    this.memory.style ??= context.state.hand.style;
    this.ways = waysOf(field);
    if (field.required) this.memory.typed ??= this.#proposed;
    this.made = el("div", { class: "signature", on: { keydown: (event) => this.#key(event) } });
    this.reason = field.reasons?.length ? this.#reasonSelect() : null;
    this.node = this.reason ? el("div", {}, this.made, this.#reasonQuestion()) : this.made;
    if (this.#attachment) this.#showMade();
    else this.#showWay(this.memory.way ?? this.ways.find((way) => way === context.state.hand.way) ?? this.ways[0]);
  }

  focus() {
    (this.wrong ?? this.first).focus();
  }

  get labels() {
    return this.named;
  }

  /** Nothing may move while it is drawn. */
  get keepsStill() {
    return this.way === "draw";
  }

  /** What a problem is about when it is not the signature. */
  get wrong() {
    return this.context.state.needsReason(this.field) ? this.reason : null;
  }

  /** Sends what was drawn or typed; afterwards the field's value is an attachment. */
  async commit() {
    if (this.way === "draw" && !this.pad.empty) {
      const flaw = this.pad.flaw();
      if (flaw) throw new Incomplete(t(`problem.${flaw}`));
      await this.#take(async () => send(await this.pad.picture(), `${this.field.type}.png`, this.field.type, this.context));
    } else if (this.way === "type" && this.memory.typed?.trim()) {
      await this.#take(() => this.#sendTyped());
    }
  }

  get #attachment() {
    return this.context.state.attachments.get(this.context.state.value(this.field.uuid));
  }

  /** Why it is signed, where the sender wants to know: one of the sender's reasons, printed beside the signature. */
  #reasonQuestion() {
    return el("div", { class: "signature__reason" }, el("label", { for: this.reason.id }, t("signature.reason")), this.reason);
  }

  #reasonSelect() {
    const { state, describedBy, id } = this.context;
    const select = el("select", { id: `${id}-reason`, class: "input", "aria-required": "true", "aria-describedby": describedBy });
    select.append(el("option", { value: "" }, t("select.choose")));
    for (const reason of this.field.reasons) {
      select.append(el("option", { value: reason, selected: state.reason(this.field) === reason }, reason));
    }
    select.addEventListener("change", () => {
      select.removeAttribute("aria-invalid");
      state.setReason(this.field, select.value);
    });
    return select;
  }

  async #take(obtain) {
    let attachment;
    try {
      attachment = await obtain();
    } catch (error) {
      throw error instanceof Incomplete ? error : new Incomplete(error.message, { cause: error });
    }
    this.#use(attachment);
  }

  async #sendTyped() {
    const { typed: text, style } = this.memory;
    const body = { request_id: newRequestId(), text, style, type: this.field.type };
    try {
      return await persistently(() => post("typed_signature", body), WAITS);
    } catch (error) {
      if (error instanceof Refused && error.formEnded) page.onEnded(error.state);
      throw new Incomplete((error instanceof Refused && error.message) || t("problem.signature_sent"), { cause: error });
    }
  }

  /** `way` is how it was made, null when it was made before. */
  #use(attachment, way = this.way) {
    const { state } = this.context;
    this.context.onSketch([], null);
    const places = this.memory.forAll ? placesLike(this.field, state, way) : [];
    if (way === "type") Object.assign(state.hand, { way, style: this.memory.style });
    if (way === "draw") state.hand.way = way;
    if (way === "type" && this.field.type === "signature") state.hand.name = this.memory.typed.trim();
    this.memory.madeBy = way;
    this.context.onInput(state.addAttachment(attachment));
    this.#putInto(places, attachment);
    this.#showMade();
  }

  /** The same in other places, each of which the signer has been told the name of. */
  #putInto(places, { uuid }) {
    if (!places.length) return;
    this.context.onAdopted(places, uuid);
    announce(count("signature.in_all", places.length + 1));
  }

  /** What is known of the signer, as they would write it here. */
  get #proposed() {
    const { state } = this.context;
    const name = (state.form.submitter_name ?? "").trim() || state.hand.name;
    return this.field.type === "initials" ? initials(name, locale) : name.slice(0, LONGEST);
  }

  /** Shows on the document what is not there yet, as it would be. */
  #sketch() {
    const { state, onSketch } = this.context;
    const fields = [this.field, ...(this.memory.forAll ? placesLike(this.field, state, this.way) : [])];
    const { pad, way } = this;
    const picture = this.styles?.picture;
    if (way === "draw") onSketch(fields, pad.empty ? null : () => pad.drawing());
    else onSketch(fields, picture ? () => el("img", { src: picture, alt: "" }) : null);
  }

  #forAll() {
    const places = placesLike(this.field, this.context.state, this.way);
    if (!places.length) return null;
    return forAllBox(this.context.id, this.field, places, this.context.state, Boolean(this.memory.forAll), (isChosen) => {
      this.memory.forAll = isChosen;
      this.#sketch();
    });
  }

  #key(event) {
    const isUndo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey;
    if (!isUndo || this.way !== "draw" || this.pad.empty) return;
    event.preventDefault();
    this.pad.undo();
  }

  #showMade() {
    this.way = "made";
    this.styles?.stop();
    const again = button(t("signature.change"), () => {
      this.context.onInput(null);
      this.#showWay(this.ways[0]);
      this.focus();
    }, "button--small");
    this.first = again;
    this.named = null;
    this.memory.strokes = [];
    this.context.onUncommitted(false);
    this.made.replaceChildren(
      el("p", { class: "hint" }, t("signature.yours")),
      el("div", { class: "preview" }, el("img", { class: "preview__picture", src: this.#attachment.url, alt: this.field.label })),
      el("div", { class: "signature__tools" }, again),
      ...this.#elsewhere(),
    );
    this.context.onLabels?.();
  }

  /** The offer to put what is made into the places that are still empty. */
  #elsewhere() {
    const { state } = this.context;
    const places = placesLike(this.field, state, this.memory.madeBy);
    if (!places.length) return [];
    const use = button(wordsFor(this.field, places), () => {
      this.#putInto(places, this.#attachment);
      this.#showMade();
      this.focus();
    }, "button--small");
    return [el("div", { class: "signature__tools" }, use), el("p", { class: "hint for-all__places" }, namesOf(this.field, places, state))];
  }

  #showWay(way) {
    this.way = this.memory.way = way;
    this.pad?.observer.disconnect();
    this.pad = null;
    this.styles?.stop();
    this.styles = null;
    const body = { draw: () => this.#drawing(), type: () => this.#typing(), upload: () => this.#uploading() }[way]();
    this.made.replaceChildren(...[this.#reuse(), this.#choice(), ...body, this.#forAll()].filter(Boolean));
    this.#sketch();
    this.context.onUncommitted(this.#begun);
    this.context.onLabels?.();
  }

  /** Something is there that Next would send. */
  get #begun() {
    return this.way === "draw" ? !this.pad.empty : this.way === "type" && Boolean(this.memory.typed?.trim());
  }

  #choice() {
    if (this.ways.length < 2) return null;
    const tabs = this.ways.map((way) => {
      const tab = button(t(`signature.${way}`), () => {
        if (way === "type") this.memory.typed ??= this.#proposed;
        this.#showWay(way);
        this.context.onProblem("");
        this.focus();
      }, "segments__one");
      tab.setAttribute("aria-pressed", String(way === this.way));
      return tab;
    });
    return el("div", { class: "segments" }, tabs);
  }

  #reuse() {
    const earlier = this.context.state.madeBefore(this.field);
    if (!earlier) return null;
    return el(
      "div",
      { class: "reuse" },
      el("img", { class: "reuse__picture", src: earlier.url, alt: "" }),
      button(t("signature.reuse"), () => {
        this.#use(earlier, null);
        this.focus();
      }, "button--small"),
    );
  }

  #drawing() {
    this.pad = new Pad({
      color: this.field.preferences?.color,
      describedBy: this.context.describedBy,
      onChange: () => {
        this.memory.strokes = this.pad.strokes;
        offer();
        this.#sketch();
        this.context.onUncommitted(this.#begun);
      },
    });
    this.pad.onPen = (isDown) => announce(t(isDown ? "signature.pen_down" : "signature.pen_up"));
    this.pad.strokes = this.memory.strokes;
    // Always there, so that nothing moves under the pen.
    const tools = [
      button(t("signature.undo"), () => takeAway(() => this.pad.undo()), "button--small"),
      button(t("signature.clear"), () => takeAway(() => this.pad.clear()), "button--small"),
    ];
    const takeAway = (act) => {
      act();
      if (this.pad.empty) this.pad.canvas.focus({ preventScroll: true }); // the buttons are gone for who uses the keyboard
    };
    const offer = () => tools.forEach((tool) => (tool.disabled = this.pad.empty));
    offer();
    // Whoever has only a keyboard just types: the first letter leads to the line for it.
    this.pad.canvas.addEventListener("keydown", (event) => {
      const letter = event.key.length === 1 && event.key.trim() && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!letter || !this.ways.includes("type")) return;
      if (this.memory.typed === this.#proposed) this.memory.typed = ""; // the letter is the first of another
      this.#showWay("type");
      this.focus();
    });
    this.first = this.named = this.pad.canvas;
    const keys = ` ${t(this.ways.includes("type") ? "signature.draw_keys" : "signature.arrow_keys")}`;
    return [el("p", { class: "hint signature__how" }, t("signature.draw_hint") + keys), this.pad.node, el("div", { class: "signature__tools" }, tools, this.#onThePhone())];
  }

  #onThePhone() {
    return byPhone(this.field, (attachment) => {
      this.#use(attachment);
      this.focus();
    });
  }

  #typing() {
    const input = el("input", {
      type: "text",
      dir: "auto",
      class: "input",
      id: this.context.id,
      maxlength: LONGEST,
      autocomplete: this.field.type === "signature" ? "name" : "off",
      "aria-describedby": this.context.describedBy,
    });
    const note = el("p", { class: "hint signature__how" }, firstOf([`signature.type_hint.${this.field.type}`, "signature.type_hint"]));
    input.value = this.memory.typed ?? "";
    this.styles = new Styles({
      id: this.context.id,
      chosen: this.memory.style,
      onChoose: (style) => {
        this.memory.style = style;
        this.#sketch();
      },
      onDrawn: (error) => {
        if (error instanceof Refused && error.state) page.onEnded(error.state);
        else if (error?.status === 422) this.context.onProblem(error.message); // no font has the letters
        this.#sketch();
      },
    });
    this.styles.show(input.value, true);
    input.addEventListener("input", () => {
      this.memory.typed = input.value;
      this.styles.show(input.value);
      this.context.onUncommitted(this.#begun);
    });
    this.first = this.named = input;
    return [note, input, this.styles.node];
  }

  #uploading() {
    const input = el("input", {
      type: "file",
      id: this.context.id,
      class: "input input--file",
      accept: PICTURE_TYPES,
      "aria-describedby": this.context.describedBy,
    });
    input.addEventListener("change", async () => {
      const [file] = input.files;
      if (!file) return;
      this.context.onBusy(true);
      try {
        this.#use(await send(file, file.name, this.field.type, this.context));
        this.context.onProblem("");
      } catch (error) {
        this.context.onProblem(error.message);
      } finally {
        this.context.onBusy(false);
      }
    });
    this.first = this.named = input;
    return [el("p", { class: "hint" }, firstOf([`signature.upload_hint.${this.field.type}`, "signature.upload_hint"])), input];
  }
}
