// Values as they will be on paper: the server draws them with the layout of the sealed file, and here the pictures are laid over
// the pages in place of the boxes' own words. Those stand there until a picture has come, and when there is no network.
import { answersBody, pause, post, Refused, TIMEOUT } from "../server/calls.js";
import { reasonText, timeZone } from "../completing.js";
import { isEmpty } from "../values/empty.js";
import { el } from "../dom.js";
import { isStep } from "../form_state.js";
import { problemWith } from "../values/validation.js";

const PAUSE = 200; // milliseconds without a change, then it is drawn
const LONGEST_PAUSE = 800; // while somebody goes on typing
const PATIENCE = 1_500; // with a picture that is out of date
const AGAIN = 5_000; // after no answer
const LAST = 1_000; // for what is under way when the form is completed
const MOST = 40; // areas of one request
const WIDEST = 4_000; // pixels of a page
const DRAWN_BY_ITSELF = new Set(["heading", "strikethrough", "stamp"]);

export class ValuePictures {
  #boxes = [];
  #near = new Set(); // sheets in sight, or soon
  #timer = null;
  #changedAt = null;
  #running = null;
  #asked = null; // ends what is under way
  #stopped = false;
  #width = 0;

  constructor(state) {
    this.state = state;
    this.nearness = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: "50% 0px" });
    this.sizes = new ResizeObserver(() => this.#measure());
    addEventListener("resize", () => this.#measure());
  }

  /** `node` shows `field.areas[number]` on `sheet`. Gives what `look` takes. */
  add(node, field, number, sheet) {
    this.sizes.observe(sheet);
    this.nearness.observe(sheet);
    const box = { node, field, number, sheet, wanted: null, shown: null, picture: null, problem: null, late: null };
    this.#boxes.push(box);
    return box;
  }

  /** What the box holds may have changed. */
  look(box) {
    const wanted = this.#wanted(box);
    if (wanted === box.wanted) return;
    box.wanted = wanted;
    if (wanted === null) this.#showWords(box);
    else if (box.picture) box.late ??= setTimeout(() => this.#showWords(box), PATIENCE);
    this.#schedule();
  }

  /** Nothing more is asked for: the form is about to be completed, and then has nothing more to draw. What is under way is
      waited for a moment, and no longer: a form that is completed is drawn for nobody. */
  async stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await Promise.race([this.#running, new Promise((resolve) => setTimeout(resolve, LAST))]);
    this.#asked?.abort();
  }

  resume() {
    this.#stopped = false;
    this.#schedule();
  }

  /** What a picture depends on; null where there is nothing to draw, or no whole answer yet. */
  #wanted({ field }) {
    const value = this.state.value(field.uuid);
    if (!this.#width || !this.state.isShown(field)) return null;
    if (isEmpty(value) && !field.display && !DRAWN_BY_ITSELF.has(field.type)) return null;
    if (isStep(field) && (isEmpty(value) || problemWith(field, value))) return null;
    return JSON.stringify([value, this.state.reason(field), this.#width]);
  }

  #measure() {
    // Pages of a document that is hidden have no width; all others have the same.
    const across = this.#boxes.map(({ sheet }) => sheet.getBoundingClientRect().width).find(Boolean) ?? 0;
    const width = Math.min(WIDEST, Math.round(across * devicePixelRatio));
    if (width === this.#width) return;
    this.#width = width;
    for (const box of this.#boxes) this.look(box);
  }

  #seen(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.#near.add(target);
      else this.#near.delete(target);
    }
    this.#schedule();
  }

  #needed() {
    return this.#boxes.filter(({ wanted, shown, sheet }) => wanted !== null && wanted !== shown && this.#near.has(sheet));
  }

  /** Soon after the last change, and now and then while the changes do not end. One request at a time. */
  #schedule() {
    if (this.#running || this.#stopped || !this.#needed().length) return;
    this.#changedAt ??= performance.now();
    clearTimeout(this.#timer);
    const rest = this.#changedAt + LONGEST_PAUSE - performance.now();
    this.#timer = setTimeout(() => this.#begin(), Math.max(0, Math.min(PAUSE, rest)));
  }

  #begin() {
    this.#changedAt = null;
    const boxes = this.#needed().slice(0, MOST);
    this.#running = this.#draw(boxes, boxes.map(({ wanted }) => wanted)).finally(() => {
      this.#running = null;
      this.#schedule();
    });
  }

  async #draw(boxes, wanted) {
    if (!boxes.length) return;
    const areas = boxes.map(({ field, number }) => [field.uuid, number]);
    const body = { ...answersBody(this.state.unsaved()), areas, width: this.#width, time_zone: timeZone() };
    const asked = new AbortController();
    const timer = setTimeout(() => asked.abort(), TIMEOUT);
    this.#asked = asked;
    try {
      const answer = await post("drawing", body, { signal: asked.signal });
      await Promise.all(answer.areas.map((area, index) => this.#lay(boxes[index], wanted[index], area)));
      this.#judge(new Set(boxes.map(({ field }) => field)));
    } catch (error) {
      for (const box of boxes) this.#showWords(box);
      // What was refused is not asked for again as it is; the page hears of it when it saves.
      if (error instanceof Refused) boxes.forEach((box, index) => (box.shown = wanted[index]));
      else if (!this.#stopped) await pause(AGAIN);
    } finally {
      clearTimeout(timer);
    }
  }

  async #lay(box, wanted, { picture, problem, x, y, w, h }) {
    const kind = liesBehind(box.field) ? "sheet__value sheet__value--behind" : "sheet__value";
    const image = picture ? el("img", { class: kind, src: picture, alt: "", "aria-hidden": true }) : null;
    if (image) {
      const place = { left: x, top: y, width: w, height: h };
      // Browsers cut lengths off to 1/64 pixel: half of that makes it rounding, so that pixels meet those of the screen.
      for (const [side, fraction] of Object.entries(place)) image.style[side] = `calc(${fraction * 100}% + 0.0078px)`;
      await image.decode().catch(() => {});
    }
    const isCurrent = box.wanted === wanted;
    // Words that are newer than the picture stay; a newer picture takes the place of an older one.
    if (box.wanted === null || (!isCurrent && !box.picture)) return;
    box.shown = wanted;
    box.problem = problem;
    if (isCurrent) this.#onTime(box);
    const before = box.picture;
    box.picture = problem ? null : image;
    if (box.picture) box.node.after(box.picture);
    before?.remove();
    box.node.classList.toggle("box--drawn", !problem);
  }

  #showWords(box) {
    this.#onTime(box);
    box.picture?.remove();
    Object.assign(box, { picture: null, shown: null, problem: null });
    box.node.classList.remove("box--drawn");
  }

  #onTime(box) {
    clearTimeout(box.late);
    box.late = null;
  }

  /** Tells the form which answers have no place on the document. */
  #judge(fields) {
    for (const field of fields) {
      const boxes = this.#boxes.filter((box) => box.field === field && box.shown !== null && box.shown === box.wanted);
      if (!isStep(field) || !boxes.length) continue;
      const problem = boxes.map((box) => box.problem).find(Boolean);
      this.state.judge(field, problem ? reasonText(field, problem) : null);
    }
  }
}

/** What is under such a stamp shows through it. */
function liesBehind({ type, preferences }) {
  return type === "stamp" && String(preferences?.position ?? "").toLowerCase() === "background";
}
