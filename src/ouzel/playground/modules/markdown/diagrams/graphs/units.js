// A unit is a box with its notes and its loops beside it, which get a place in a layer together.

import { label, linesOf, measure, round, shape } from "../svg.js";
import { edgeEnd } from "./edge_ends.js";

const NOTE_GAP = 18;
const NOTE_PADDING = 10;
const LOOP_PX = 30; // from the box to the farthest place of a loop

/**
 * Returns the unit of a box. `box` has `id`, `width`, `height`, `draw` (which returns nodes for an area) and perhaps `end` (see
 * `placeInLayers`) and `notes`, each with `side` ("before" or "after") and `text`. `loops` are the edges from the box to itself.
 */
export function makeUnit(box, { path, loops, turn }) {
  const body = turn.size(box);
  const extras = (box.notes ?? []).map((note) => makeNote(note, turn));
  if (loops.length > 0) extras.unshift(makeLoop(loops, turn));
  const [before, after] = ["before", "after"].map((side) => sum(extras.filter((extra) => extra.side === side).map(({ width }) => width)));
  return {
    id: box.id, box, path, body, extras, end: box.end,
    width: body.width + before + after,
    height: Math.max(body.height, ...extras.map(({ height }) => height)),
    anchor: (before - after) / 2, // from the middle of the unit to the middle of its box
  };
}

export function bodyArea(unit, turn) {
  return turn.area({ x: unit.x + unit.anchor, y: unit.y, ...unit.body });
}

export function drawUnit(unit, turn) {
  const nodes = [];
  const far = { before: unit.x + unit.anchor - unit.body.width / 2, after: unit.x + unit.anchor + unit.body.width / 2 };
  for (const { side, width, draw } of unit.extras) {
    const sign = side === "before" ? -1 : 1;
    nodes.push(...draw({ near: far[side], far: far[side] + sign * width, y: unit.y }));
    far[side] += sign * width;
  }
  return [...nodes, ...unit.box.draw(bodyArea(unit, turn))];
}

function makeNote({ side, text }, turn) {
  const lines = linesOf(text);
  const { width, height } = measure(lines);
  const size = turn.size({ width: width + 2 * NOTE_PADDING, height: height + NOTE_PADDING });
  const draw = ({ near, far, y }) => {
    const sign = Math.sign(far - near);
    const area = turn.area({ x: far - (sign * size.width) / 2, y, ...size });
    return [line(turn.point({ x: near, y }), turn.point({ x: near + sign * NOTE_GAP, y })), ...drawNote(lines, area)];
  };
  return { side, width: size.width + NOTE_GAP, height: size.height, draw };
}

/** Returns the nodes of a note around lines of text. */
export function drawNote(lines, { x, y, width, height }) {
  return [shape("rect", { x: x - width / 2, y: y - height / 2, width, height, class: "note" }), label(lines, x, y)];
}

/** Loops of a box are one line, with the texts of all of them. */
function makeLoop(loops, turn) {
  const lines = loops.flatMap((loop) => (loop.text === "" ? [] : linesOf(loop.text)));
  const { width, height } = measure(lines);
  const size = turn.size({ width: lines.length === 0 ? 0 : width + 8, height });
  const draw = ({ near, y }) => {
    const out = near + LOOP_PX * 1.3; // a curve reaches three quarters of the way to its handles
    const [first, one, other, last] = [[near, y - 8], [out, y - 20], [out, y + 20], [near, y + 8]].map(([px, py]) => turn.point({ x: px, y: py }));
    const write = (point) => `${round(point.x)} ${round(point.y)}`;
    const path = shape("path", { d: `M${write(first)}C${write(one)} ${write(other)} ${write(last)}`, class: `edge ${loops[0].kind}` });
    const direction = turn.point({ x: -0.94, y: -0.34 });
    const text = turn.point({ x: near + LOOP_PX + 4 + size.width / 2, y });
    const back = turn.point({ x: -0.94, y: 0.34 });
    return [path, ...edgeEnd(loops[0].start, first, back), ...edgeEnd(loops[0].end, last, direction), ...(lines.length === 0 ? [] : [label(lines, text.x, text.y, { kind: "label edge-label" })])];
  };
  return { side: "after", width: LOOP_PX + size.width + 8, height: Math.max(40, size.height), draw };
}

function line(from, to) {
  return shape("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y, class: "edge dotted" });
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
