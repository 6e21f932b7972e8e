// How strokes look: smooth curves through every point that was drawn, thinner where the pen was fast.
//
// A stroke is a list of points `{x, y, time, pressure}` in widths of the pad and milliseconds; `pressure` is there only for pens that
// feel it. The same points always give the same picture, however large it is.

const PEN = 0.0085; // of the pad's width: the line of a hand that is in no hurry
const [THINNEST, THICKEST] = [0.5, 1.35]; // times PEN
const SLOWING = 0.6; // widths of the pad in a second that make it this much thinner
const MOMENT = 40; // milliseconds over which speed is measured: single points come in bursts
const GRADUAL = 0.03; // of the pad's width: a line becomes thicker or thinner over this length
const DOT = 1.25;
const PIECE = 1.5; // pixels
const MOST_PIECES = 64;

/** Draws `stroke`, from the curve that begins at its point number `first` on. */
export function paint(context, stroke, scale, ink, first = 0) {
  context.strokeStyle = ink;
  context.fillStyle = ink;
  context.lineCap = "round";
  const line = widths(stroke);
  if (stroke.length < 2) {
    context.beginPath();
    context.arc(stroke[0].x * scale, stroke[0].y * scale, (line[0] * DOT * scale) / 2, 0, 2 * Math.PI);
    context.fill();
    return;
  }
  for (let index = Math.max(0, first); index < stroke.length - 1; index += 1) {
    let before = stroke[index];
    const points = curve(stroke, index, scale);
    points.forEach((point, number) => {
      const along = (number + 1) / points.length;
      context.lineWidth = (line[index] + (line[index + 1] - line[index]) * along) * scale;
      context.beginPath();
      context.moveTo(before.x * scale, before.y * scale);
      context.lineTo(point.x * scale, point.y * scale);
      context.stroke();
      before = point;
    });
  }
}

/** What the strokes cover, without the width of the line: left, top, width, height. */
export function extent(strokes) {
  const points = strokes.flatMap((stroke) => [stroke[0], ...stroke.slice(1).flatMap((_, index) => curve(stroke, index, 500))]);
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y } of points) {
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x), Math.max(bottom, y)];
  }
  return { left, top, width: right - left, height: bottom - top };
}

/** The width of the line at each point of the stroke. */
export function widths(stroke) {
  let width = PEN * wanted(stroke, Math.min(1, stroke.length - 1));
  return stroke.map((point, index) => {
    const length = index ? distance(stroke[index - 1], point) : 0;
    width += (PEN * wanted(stroke, index) - width) * (1 - Math.exp(-length / GRADUAL));
    return width;
  });
}

/** By how hard the pen presses where it says so, else by how fast it goes. */
function wanted(stroke, index) {
  const { pressure } = stroke[index];
  if (pressure) return THINNEST + (THICKEST - THINNEST) * Math.min(1, pressure * 1.2);
  const speed = speedAt(stroke, index);
  return speed === null ? 1 : Math.max(THINNEST, THICKEST / (1 + SLOWING * speed));
}

/** In widths of the pad in a second, over the last moment; null at a point that no time led to. */
function speedAt(stroke, index) {
  let length = 0;
  for (let other = index; other > 0; other -= 1) {
    length += distance(stroke[other], stroke[other - 1]);
    const took = stroke[index].time - stroke[other - 1].time;
    if (took >= MOMENT || (other === 1 && took > 0)) return (length * 1000) / took;
  }
  return null;
}

/** The points from `stroke[index]`, which is not among them, to the next one: a centripetal Catmull-Rom spline, which goes through
    every point and makes no loops of its own, so that the peaks of a fast stroke stay as high as they were drawn. */
function curve(stroke, index, scale) {
  const [from, to] = [stroke[index], stroke[index + 1]];
  const length = distance(from, to);
  const pieces = Math.min(MOST_PIECES, Math.ceil((length * scale) / PIECE));
  if (pieces < 2) return [to];
  const [one, two] = [control(from, to, stroke[index - 1]), control(to, from, stroke[index + 2])];
  return Array.from({ length: pieces }, (_, number) => {
    const along = (number + 1) / pieces;
    const [a, b, c, d] = [(1 - along) ** 3, 3 * along * (1 - along) ** 2, 3 * along ** 2 * (1 - along), along ** 3];
    return number === pieces - 1 ? to : { x: a * from.x + b * one.x + c * two.x + d * to.x, y: a * from.y + b * one.y + c * two.y + d * to.y };
  });
}

/** The control point beside `here` of the curve between it and `there`; `beyond` is the point on the other side of `here`. */
function control(here, there, beyond) {
  const [to, back] = [Math.sqrt(distance(here, there)), beyond ? Math.sqrt(distance(here, beyond)) : 0];
  if (!to || !back) return here;
  const part = (axis) => {
    const tangent = to ** 2 * (here[axis] - beyond[axis]) + back ** 2 * (there[axis] - here[axis]);
    return here[axis] + tangent / (3 * back * (back + to));
  };
  return { x: part("x"), y: part("y") };
}

function distance(one, other) {
  return Math.hypot(one.x - other.x, one.y - other.y);
}
