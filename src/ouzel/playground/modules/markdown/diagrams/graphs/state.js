// Diagrams of states: states, their starts, ends, choices and bars, and states with regions inside. Each region is a graph of
// its own; a state with regions is a box around their drawings.

import { label, LINE_PX, linesOf, measure, shape } from "../svg.js";
import { drawGraph, layOutGraph } from "./graph_drawing.js";
import { readStates } from "./state_reader.js";
import { layTransitions } from "./transitions.js";

const PADDING_X = 14;
const PADDING_Y = 9;
const REGION_PADDING = 14;
const DOT_PX = 16;
const BAR_PX = 70;
const CHOICE_PX = 30;

export function draw(statements, names) {
  const { root, transitions } = readStates(statements);
  layTransitions(transitions);
  return drawGraph(makeGraph(root), names);
}

function makeGraph({ direction, states, edges, gates }) {
  return { direction, boxes: [...states.map(makeBox), ...gates.map(makeGate)], edges };
}

/** Returns the box of a gate, which is a place where a transition crosses the border of a state. */
function makeGate({ id, end }) {
  return { id, end, width: 2, height: 0, draw: () => [] };
}

function makeBox(state) {
  const box = { id: state.id, notes: state.notes };
  switch (state.kind) {
    case "start": return { ...box, width: DOT_PX, height: DOT_PX, draw: ({ x, y }) => [shape("circle", { cx: x, cy: y, r: 7, class: "head" })] };
    case "end": return { ...box, width: DOT_PX + 2, height: DOT_PX + 2, draw: drawEnd };
    case "choice": return { ...box, width: CHOICE_PX, height: CHOICE_PX, draw: drawChoice };
    case "fork":
    case "join": return { ...box, ...barSize(state.region.direction), hasPorts: true, draw: drawBar };
    default: return state.regions.some(({ states }) => states.length > 0) ? { ...box, ...makeOuterBox(state) } : { ...box, ...makePlainBox(state) };
  }
}

function makePlainBox({ id, texts }) {
  const [title, ...details] = (texts.length === 0 ? [id] : texts).map((text) => linesOf(text));
  const more = details.flat();
  const size = measure([...title, ...more]);
  const gap = more.length === 0 ? 0 : 10;
  const area = { width: Math.max(size.width + 2 * PADDING_X, 50), height: size.height + 2 * PADDING_Y + gap };
  const paint = ({ x, y, width, height }) => {
    const top = y - height / 2;
    const nodes = [shape("rect", { x: x - width / 2, y: top, width, height, rx: 8, class: "box" })];
    const titleHeight = title.length * LINE_PX;
    nodes.push(label(title, x, top + PADDING_Y + titleHeight / 2));
    if (more.length === 0) return nodes;
    const divider = top + PADDING_Y + titleHeight + gap / 2;
    nodes.push(shape("line", { x1: x - width / 2, x2: x + width / 2, y1: divider, y2: divider, class: "rule" }));
    nodes.push(label(more, x, divider + gap / 2 + (more.length * LINE_PX) / 2));
    return nodes;
  };
  return { ...area, hasPorts: true, draw: paint };
}

function makeOuterBox(state) {
  const title = linesOf(state.texts.join("\n") || state.id);
  const regions = state.regions.filter(({ states }) => states.length > 0).map((region) => layOutGraph(makeGraph(region)));
  const head = title.length * LINE_PX + 12;
  const wide = regions.reduce((sum, region) => sum + region.width + 2 * REGION_PADDING, 0);
  const size = { width: Math.max(wide, measure(title).width + 2 * REGION_PADDING), height: head + Math.max(...regions.map(({ height }) => height)) + 2 * REGION_PADDING };
  const areas = new Map();
  let left = -wide / 2;
  for (const region of regions) {
    region.x = left + REGION_PADDING + region.width / 2;
    region.left = left;
    left += region.width + 2 * REGION_PADDING;
    for (const [id, area] of region.areas) areas.set(id, { ...area, x: area.x + region.x, y: area.y + head / 2 });
  }
  const paint = ({ x, y, width, height }) => {
    const top = y - height / 2;
    const nodes = [shape("rect", { x: x - width / 2, y: top, width, height, rx: 8, class: "group outer" }), label(title, x, top + head / 2, { kind: "label group-title" })];
    for (const [index, region] of regions.entries()) {
      if (index > 0) nodes.push(shape("line", { x1: x + region.left, x2: x + region.left, y1: top + head, y2: top + height, class: "divider" }));
      nodes.push(...region.draw(x + region.x, y + head / 2));
    }
    nodes.push(shape("line", { x1: x - width / 2, x2: x + width / 2, y1: top + head, y2: top + head, class: "rule" }));
    return nodes;
  };
  return { ...size, areas, hasPorts: true, draw: paint };
}

function barSize(direction) {
  const isAcross = direction === "LR" || direction === "RL";
  return isAcross ? { width: 8, height: BAR_PX } : { width: BAR_PX, height: 8 };
}

function drawEnd({ x, y }) {
  return [shape("circle", { cx: x, cy: y, r: 8, class: "hollow-head" }), shape("circle", { cx: x, cy: y, r: 4.5, class: "head" })];
}

function drawChoice({ x, y }) {
  const half = CHOICE_PX / 2;
  return [shape("polygon", { points: `${x} ${y - half} ${x + half} ${y} ${x} ${y + half} ${x - half} ${y}`, class: "box" })];
}

function drawBar({ x, y, width, height }) {
  return [shape("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 3, class: "head" })];
}
