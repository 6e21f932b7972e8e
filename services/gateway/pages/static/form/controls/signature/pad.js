// A field to draw in with a finger, a pen or the mouse.
//
// Strokes are kept as fractions of the pad's width, and the pad always has the same shape, so that turning the phone or
// zooming loses and distorts nothing: the canvas is only ever a picture of the strokes.
import { el } from "../../dom.js";
import { extent, paint } from "./pen.js";

const SHAPE = 5 / 2;
const INK = { black: "#101828", blue: "#123a8c", white: "#101828" };
const SMALLEST = 0.06;
const STRAIGHT = 0.012;
const EXPORTED_WIDTH = 1200;
const MARGIN = 0.02;
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const [KEY_STEP, FINE_STEP] = [0.02, 0.005];
const NIB = 0.008; // of the pad's width: how large the pen of the keyboard is shown
const PALM = 90; // pixels across: no finger touches so wide

export class Pad {
  strokes = [];
  #drawing = null;
  #hasPen = false;
  #nib = null; // where the pen of the keyboard is, and whether it is on the paper
  #isDown = false;

  /** The keyboard has lowered or lifted its pen. */
  onPen = () => {};

  constructor({ color, onChange, describedBy }) {
    this.ink = INK[color] ?? INK.black;
    this.onChange = onChange;
    this.canvas = el("canvas", { class: "pad__canvas", tabindex: 0, role: "img", "aria-describedby": describedBy });
    this.node = el("div", { class: "pad" }, el("div", { class: "pad__line" }), this.canvas);
    this.node.style.aspectRatio = String(SHAPE);
    this.canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.#go(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) this.canvas.addEventListener(end, (event) => this.#end(event));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("blur", () => this.#lift());
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.node);
  }

  get empty() {
    return this.strokes.length === 0;
  }

  clear() {
    this.#drawing = null;
    this.#isDown = false;
    this.strokes = [];
    this.#changed();
  }

  /** Takes the last stroke away. */
  undo() {
    if (this.#drawing) return;
    this.#isDown = false;
    this.strokes.pop();
    this.#changed();
  }

  /** `"small"` for a dot, `"straight"` for nothing but parallel straight lines, else null. A cross is a signature. */
  flaw() {
    const { width, height } = extent(this.strokes);
    if (Math.max(width, height) < SMALLEST) return "small";
    const directions = this.strokes.map(direction);
    const parallel = directions.every((angle) => angle !== null && turned(angle, directions[0]) < 0.3);
    return parallel ? "straight" : null;
  }

  /** The strokes alone, cut to their extent, on nothing, as a PNG. */
  picture() {
    return new Promise((resolve) => this.drawing().toBlob(resolve, "image/png"));
  }

  /** The same as an element that shows it. */
  drawing() {
    const { left, top, width, height } = extent(this.strokes);
    const scale = EXPORTED_WIDTH / Math.max(width + 2 * MARGIN, 0.5);
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil((width + 2 * MARGIN) * scale);
    canvas.height = Math.ceil((height + 2 * MARGIN) * scale);
    const context = canvas.getContext("2d");
    context.translate((MARGIN - left) * scale, (MARGIN - top) * scale);
    for (const stroke of this.strokes) paint(context, stroke, scale, this.ink);
    return canvas;
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    const point = { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.width, time: event.timeStamp };
    // A pen that does not feel how hard it is pressed says 0.5 all the time.
    return event.pointerType === "pen" && event.pressure !== 0.5 ? { ...point, pressure: event.pressure } : point;
  }

  /** A pen takes the pad from the hand that lies on it, whichever touched it first. */
  #begin(event) {
    const isPen = event.pointerType === "pen";
    const isHand = event.pointerType === "touch" && (this.#hasPen || Math.max(event.width, event.height) > PALM);
    const takesOver = isPen && this.#drawing?.isTouch;
    if (event.button > 0 || isHand || (this.#drawing && !takesOver)) return;
    event.preventDefault();
    this.#lift();
    if (takesOver) this.strokes.pop();
    this.#hasPen ||= isPen;
    this.canvas.setPointerCapture(event.pointerId);
    this.#drawing = { id: event.pointerId, isTouch: event.pointerType === "touch" };
    this.strokes.push([this.#point(event)]);
    this.#changed();
  }

  /** Every place where the pointer was, also between two frames: the peaks of a fast stroke are there. */
  #go(event) {
    if (event.pointerId !== this.#drawing?.id) return;
    const stroke = this.strokes.at(-1);
    const known = stroke.length;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) {
      const point = this.#point(each);
      const last = stroke.at(-1);
      if (point.x !== last.x || point.y !== last.y) stroke.push(point);
    }
    if (known < 2) this.#draw();
    else if (stroke.length > known) paint(this.#context, stroke, this.canvas.width, this.ink, known - 2);
  }

  /** A touch that the browser takes back was no stroke, unless something had come of it. */
  #end(event) {
    if (event.pointerId !== this.#drawing?.id) return;
    const { isTouch } = this.#drawing;
    this.#drawing = null;
    const { width, height } = extent(this.strokes.slice(-1));
    if (event.type === "pointercancel" && isTouch && Math.max(width, height) < SMALLEST) this.strokes.pop();
    this.#changed();
  }

  /** Whoever cannot drag draws with the arrow keys; the space bar lowers and lifts the pen. */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.#drawing) return;
    const direction = KEYS[event.key];
    if (!direction && event.key !== " ") return;
    event.preventDefault();
    const { x, y } = this.#nib ?? { x: 0.1, y: 0.6 / SHAPE };
    const step = event.shiftKey ? FINE_STEP : KEY_STEP;
    const [right, down] = direction ?? [0, 0];
    this.#nib = { x: Math.min(1, Math.max(0, x + right * step)), y: Math.min(1 / SHAPE, Math.max(0, y + down * step)), time: 0 };
    if (!direction) this.#press();
    else if (this.#isDown) this.strokes.at(-1).push(this.#nib);
    this.#changed();
  }

  #press() {
    this.#isDown = !this.#isDown;
    if (this.#isDown) this.strokes.push([this.#nib]);
    this.onPen(this.#isDown);
  }

  #lift() {
    if (!this.#nib) return;
    this.#nib = null;
    this.#isDown = false;
    this.#draw();
  }

  #changed() {
    this.#draw();
    this.onChange();
  }

  #resize() {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.node.clientWidth * ratio);
    this.canvas.height = Math.round(this.node.clientHeight * ratio);
    this.#draw();
  }

  get #context() {
    return this.canvas.getContext("2d");
  }

  #draw() {
    this.#context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const stroke of this.strokes) paint(this.#context, stroke, this.canvas.width, this.ink);
    if (this.#nib) this.#drawNib(this.#context, this.canvas.width);
  }

  #drawNib(context, scale) {
    context.lineWidth = 0.003 * scale;
    context.beginPath();
    context.arc(this.#nib.x * scale, this.#nib.y * scale, NIB * scale, 0, 2 * Math.PI);
    if (this.#isDown) context.fill();
    context.stroke();
  }
}

/** The angle of a straight stroke (0 to pi), null for one that bends. */
function direction(stroke) {
  const [first, last] = [stroke[0], stroke.at(-1)];
  const length = Math.hypot(last.x - first.x, last.y - first.y);
  if (length < SMALLEST / 2) return null;
  const off = (point) =>
    Math.abs((last.x - first.x) * (first.y - point.y) - (first.x - point.x) * (last.y - first.y)) / length;
  const bends = stroke.some((point) => off(point) > Math.max(STRAIGHT, length * 0.03));
  return bends ? null : (Math.atan2(last.y - first.y, last.x - first.x) + Math.PI) % Math.PI;
}

function turned(angle, other) {
  const difference = Math.abs(angle - other);
  return Math.min(difference, Math.PI - difference);
}
