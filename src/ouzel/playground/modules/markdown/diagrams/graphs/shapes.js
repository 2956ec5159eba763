// The boxes of flowcharts: how large each shape is around its text, and its outline.

import { label, round, shape } from "../svg.js";

const PADDING_X = 14;
const PADDING_Y = 9;
const LEAN = 14;

/** Returns the size of a box around a text of that size. */
export function sizeFor(kind, { width, height }) {
  const [inner, tall] = [width + 2 * PADDING_X, height + 2 * PADDING_Y];
  if (kind === "circle" || kind === "double-circle") {
    const side = Math.hypot(width, height) + (kind === "circle" ? 16 : 26);
    return { width: side, height: side };
  }
  if (kind === "diamond") return { width: width + height + 32, height: height + 0.36 * width + 32 };
  if (kind === "cylinder") return { width: inner, height: tall + 16 };
  if (kind === "box" || kind === "round") return { width: inner, height: tall };
  return { width: inner + 2 * LEAN, height: tall };
}

/** Returns the nodes of a box. */
export function boxShape({ kind, lines }, area) {
  const { x, y } = area;
  return [...outline(kind, area), label(lines, x, kind === "cylinder" ? y + 5 : y)];
}

function outline(kind, { x, y, width, height }) {
  const [left, top, right, bottom] = [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
  const rect = (rx, inset = 0) => shape("rect", { x: left + inset, y: top, width: width - 2 * inset, height, rx, class: "box" });
  const polygon = (...points) => [shape("polygon", { points: points.map(round).join(" "), class: "box" })];
  switch (kind) {
    case "round": return [rect(8)];
    case "stadium": return [rect(height / 2)];
    case "subroutine": return [rect(0), shape("path", { d: `M${round(left + 8)} ${round(top)}V${round(bottom)}M${round(right - 8)} ${round(top)}V${round(bottom)}`, class: "box" })];
    case "circle": return [shape("circle", { cx: x, cy: y, r: width / 2, class: "box" })];
    case "double-circle": return [shape("circle", { cx: x, cy: y, r: width / 2, class: "box" }), shape("circle", { cx: x, cy: y, r: width / 2 - 5, class: "box" })];
    case "cylinder": return [shape("path", { d: cylinder(left, top, width, height), class: "box" })];
    case "diamond": return polygon(x, top, right, y, x, bottom, left, y);
    case "hexagon": return polygon(left + LEAN, top, right - LEAN, top, right, y, right - LEAN, bottom, left + LEAN, bottom, left, y);
    case "lean-right": return polygon(left + LEAN, top, right, top, right - LEAN, bottom, left, bottom);
    case "lean-left": return polygon(left, top, right - LEAN, top, right, bottom, left + LEAN, bottom);
    case "trapezoid": return polygon(left + LEAN, top, right - LEAN, top, right, bottom, left, bottom);
    case "trapezoid-down": return polygon(left, top, right, top, right - LEAN, bottom, left + LEAN, bottom);
    case "flag": return polygon(left, top, right, top, right, bottom, left, bottom, left + LEAN, y);
    default: return [rect(2)];
  }
}

function cylinder(left, top, width, height) {
  const [rx, ry] = [width / 2, 7];
  const [upper, down] = [round(top + ry), round(height - 2 * ry)];
  const arc = (sweep, dx) => `a${round(rx)} ${ry} 0 0 ${sweep} ${round(dx)} 0`;
  return `M${round(left)} ${upper}${arc(1, width)}v${down}${arc(1, -width)}zM${round(left)} ${upper}${arc(0, width)}`;
}
