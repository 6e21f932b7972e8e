// A field to draw in with a finger, a pen or the mouse.
//
// Strokes are kept as fractions of the pad's width, and the pad always has the same shape, so that turning the phone or
// zooming loses and distorts nothing: the canvas is only ever a picture of the strokes.
import { el } from "../dom.js";

const SHAPE = 5 / 2;
const INK = { black: "#101828", blue: "#123a8c", white: "#101828" };
const PEN = 0.0085; // of the pad's width
const SMALLEST = 0.06;
const STRAIGHT = 0.012;
const EXPORTED_WIDTH = 1200;
const MARGIN = 0.02;

export class Pad {
  strokes = [];
  #drawing = null;

  constructor({ color, onChange, describedBy }) {
    this.ink = INK[color] ?? INK.black;
    this.onChange = onChange;
    this.canvas = el("canvas", { class: "pad__canvas", tabindex: 0, role: "img", "aria-describedby": describedBy });
    this.node = el("div", { class: "pad" }, el("div", { class: "pad__line" }), this.canvas);
    this.node.style.aspectRatio = String(SHAPE);
    this.canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.#go(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, (event) => this.#end(event));
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.node);
  }

  get empty() {
    return this.strokes.length === 0;
  }

  clear() {
    this.strokes = [];
    this.#changed();
  }

  undo() {
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
    const { left, top, width, height } = extent(this.strokes);
    const scale = EXPORTED_WIDTH / Math.max(width + 2 * MARGIN, 0.5);
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil((width + 2 * MARGIN) * scale);
    canvas.height = Math.ceil((height + 2 * MARGIN) * scale);
    const context = canvas.getContext("2d");
    context.translate((MARGIN - left) * scale, (MARGIN - top) * scale);
    paint(context, this.strokes, scale, this.ink);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.width };
  }

  #begin(event) {
    if (event.button > 0 || this.#drawing !== null) return;
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.#drawing = event.pointerId;
    this.strokes.push([this.#point(event)]);
    this.#changed();
  }

  #go(event) {
    if (event.pointerId !== this.#drawing) return;
    const points = (event.getCoalescedEvents?.() ?? []).map((pointer) => this.#point(pointer));
    this.strokes.at(-1).push(...(points.length ? points : [this.#point(event)]));
    this.#draw();
  }

  #end(event) {
    if (event.pointerId !== this.#drawing) return;
    this.#drawing = null;
    this.#changed();
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

  #draw() {
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    paint(context, this.strokes, this.canvas.width, this.ink);
  }
}

/** Each stroke as one smooth curve: through the middles between its points, with the points as control points. */
function paint(context, strokes, scale, ink) {
  context.strokeStyle = ink;
  context.fillStyle = ink;
  context.lineWidth = PEN * scale;
  context.lineCap = "round";
  context.lineJoin = "round";
  for (const stroke of strokes) {
    const points = stroke.map(({ x, y }) => ({ x: x * scale, y: y * scale }));
    context.beginPath();
    if (points.length < 2) {
      context.arc(points[0].x, points[0].y, (PEN * scale) / 1.6, 0, 2 * Math.PI);
      context.fill();
      continue;
    }
    context.moveTo(points[0].x, points[0].y);
    for (let index = 1; index < points.length - 1; index += 1) {
      const [here, after] = [points[index], points[index + 1]];
      context.quadraticCurveTo(here.x, here.y, (here.x + after.x) / 2, (here.y + after.y) / 2);
    }
    context.lineTo(points.at(-1).x, points.at(-1).y);
    context.stroke();
  }
}

function extent(strokes) {
  const points = strokes.flat();
  const [left, top] = [Math.min(...points.map(({ x }) => x)), Math.min(...points.map(({ y }) => y))];
  const [right, bottom] = [Math.max(...points.map(({ x }) => x)), Math.max(...points.map(({ y }) => y))];
  return { left, top, width: right - left, height: bottom - top };
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
