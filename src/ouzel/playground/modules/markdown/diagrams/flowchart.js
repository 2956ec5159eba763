// Flowcharts: boxes in layers, edges between them, and groups around boxes. It is placed from above to below; other directions
// are turned at the end.

import { readFlowchart } from "./flowchart_reader.js";
import { endsOf, placeInLayers } from "./layers.js";
import { boxShape, sizeFor } from "./shapes.js";
import { arrowHead, drawing, label, LINE_PX, linesOf, measure, round, shape } from "./svg.js";

const MARGIN = 12;
const GROUP_PADDING = 14;
const PARALLEL_PX = 16;

export function drawFlowchart(statements, name) {
  const chart = readFlowchart(statements);
  const turn = new Turn(chart.direction);
  const boxes = [...chart.nodes.values()].map((node) => makeBox(node, chart.groups, turn));
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const edges = chart.edges.map((edge) => makeEdge(edge, byId, turn));
  placeInLayers(boxes, edges);
  separateParallels(edges);
  const groups = [...chart.groups.values()].map((group) => frame(group, boxes, turn)).filter((each) => each !== null);
  const bounds = boundsOf([...boxes.map((box) => turn.area(box)), ...groups.map(({ area }) => area), ...edges.flatMap((edge) => edgeAreas(edge, turn))]);
  const nodes = [
    ...groups.sort((one, other) => other.area.width * other.area.height - one.area.width * one.area.height).flatMap(({ nodes: parts }) => parts),
    ...edges.flatMap((edge) => drawEdge(edge, turn)),
    ...boxes.flatMap((box) => boxShape(box, turn.area(box))),
    ...edges.flatMap((edge) => drawLabel(edge, turn)),
  ];
  const moved = shape("g", { transform: `translate(${round(MARGIN - bounds.left)} ${round(MARGIN - bounds.top)})` }, ...nodes);
  return drawing(bounds.right - bounds.left + 2 * MARGIN, bounds.bottom - bounds.top + 2 * MARGIN, name, moved);
}

/** Turns places from above-to-below into the direction of the chart. */
class Turn {
  constructor(direction) {
    this.isAcross = direction === "LR" || direction === "RL";
    this.sign = direction === "BT" || direction === "RL" ? -1 : 1;
  }

  size({ width, height }) {
    return this.isAcross ? { width: height, height: width } : { width, height };
  }

  point({ x, y }) {
    return this.isAcross ? { x: y * this.sign, y: x } : { x, y: y * this.sign };
  }

  area(box) {
    return { ...this.point(box), ...this.size(box) };
  }
}

function makeBox({ id, text, shape: kind, group }, groups, turn) {
  const lines = linesOf(text);
  const path = [];
  for (let each = group; each !== null && !path.includes(each); each = groups.get(each).parent) path.unshift(each);
  return { id, kind, lines, path, ...turn.size(sizeFor(kind, measure(lines))) };
}

function makeEdge(edge, byId, turn) {
  const lines = edge.text === "" ? [] : linesOf(edge.text);
  const { width, height } = measure(lines);
  return { ...edge, from: byId.get(edge.from), to: byId.get(edge.to), lines, label: lines.length === 0 ? null : turn.size({ width: width + 8, height }), isTurned: false, shift: 0 };
}

/** Edges between the same two boxes stand beside each other. */
function separateParallels(edges) {
  const bundles = new Map();
  for (const edge of edges) {
    const key = [edge.from.id, edge.to.id].sort().join("\n");
    bundles.set(key, [...(bundles.get(key) ?? []), edge]);
  }
  for (const bundle of bundles.values()) bundle.forEach((edge, index) => (edge.shift = (index - (bundle.length - 1) / 2) * PARALLEL_PX));
}

function frame({ id, title }, boxes, turn) {
  const members = boxes.filter(({ path }) => path.includes(id)).map((box) => ({ area: turn.area(box), depth: box.path.length - box.path.indexOf(id) }));
  if (members.length === 0) return null;
  const depth = Math.max(...members.map((each) => each.depth)); // of groups in this one
  const padding = depth * GROUP_PADDING;
  const { left, top, right, bottom } = boundsOf(members.map(({ area }) => area));
  const lines = linesOf(title);
  const width = Math.max(right - left + 2 * padding, measure(lines).width + 2 * GROUP_PADDING);
  const x = (left + right) / 2;
  const y = top - padding - (lines.length + depth - 1) * LINE_PX;
  const height = bottom + padding - y;
  const text = label(lines, x, y + 4 + (lines.length * LINE_PX) / 2, { kind: "label group-title" });
  const area = { x, y: y + height / 2, width, height };
  return { area, nodes: [shape("rect", { x: x - width / 2, y, width, height, rx: 4, class: "group" }), text] };
}

function drawEdge(edge, turn) {
  if (edge.kind === "invisible") return [];
  if (edge.from === edge.to) return drawLoop(edge, turn);
  const { upper, lower } = endsOf(edge);
  const first = { x: upper.x + edge.shift, y: upper.y + upper.height / 2 };
  const last = { x: lower.x + edge.shift, y: lower.y - lower.height / 2 };
  const [above, below] = edge.isTurned ? [edge.end, edge.start] : [edge.start, edge.end];
  const points = [first, ...edge.points, last];
  const path = points.slice(1).map((point, index) => curve(points[index], point, turn));
  const { x, y } = turn.point(first);
  const heads = [above && head(first, -1, above, turn), below && head(last, 1, below, turn)].filter(Boolean);
  return [shape("path", { d: `M${round(x)} ${round(y)}${path.join("")}`, class: `edge ${edge.kind}` }), ...heads];
}

function curve(from, to, turn) {
  const middle = (from.y + to.y) / 2;
  const points = [{ x: from.x, y: middle }, { x: to.x, y: middle }, to].map((point) => turn.point(point));
  return `C${points.map(({ x, y }) => `${round(x)} ${round(y)}`).join(" ")}`;
}

function head(point, sign, kind, turn) {
  const { x, y } = turn.point(point);
  const direction = sign * turn.sign;
  return arrowHead(x, y, turn.isAcross ? direction : 0, turn.isAcross ? 0 : direction, kind === "<" ? ">" : kind);
}

function drawLoop({ from, kind, end }, turn) {
  const { x, y, width } = turn.area(from);
  const right = x + width / 2;
  const path = `M${round(right)} ${round(y - 8)}C${round(right + 34)} ${round(y - 22)} ${round(right + 34)} ${round(y + 22)} ${round(right)} ${round(y + 8)}`;
  return [shape("path", { d: path, class: `edge ${kind}` }), ...(end === "" ? [] : [arrowHead(right, y + 8, -0.94, -0.34, end)])];
}

function labelPoint(edge, turn) {
  if (edge.from !== edge.to) return turn.point(edge.labelPlace);
  const { x, y, width } = turn.area(edge.from);
  return { x: x + width / 2 + 34 + measure(edge.lines).width / 2, y };
}

function drawLabel(edge, turn) {
  if (edge.label === null || edge.kind === "invisible") return [];
  const { x, y } = labelPoint(edge, turn);
  const { width, height } = measure(edge.lines);
  const back = shape("rect", { x: x - width / 2 - 4, y: y - height / 2, width: width + 8, height, class: "label-back" });
  return [back, label(edge.lines, x, y, { kind: "label edge-label" })];
}

function edgeAreas(edge, turn) {
  const places = edge.points.map((point) => ({ ...turn.point(point), width: 0, height: 0 }));
  if (edge.label !== null) places.push({ ...labelPoint(edge, turn), ...measure(edge.lines) });
  if (edge.from === edge.to) places.push({ ...turn.area(edge.from), width: turn.area(edge.from).width + 70 });
  return places;
}

function boundsOf(areas) {
  return {
    left: Math.min(...areas.map(({ x, width }) => x - width / 2)),
    right: Math.max(...areas.map(({ x, width }) => x + width / 2)),
    top: Math.min(...areas.map(({ y, height }) => y - height / 2)),
    bottom: Math.max(...areas.map(({ y, height }) => y + height / 2)),
  };
}
