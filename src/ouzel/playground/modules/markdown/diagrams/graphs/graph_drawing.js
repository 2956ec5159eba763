// The drawing of a graph: boxes in layers, edges between them, and groups around boxes. Flowcharts, states, classes and entities
// say how a box looks.

import { drawing, label, LINE_PX, linesOf, measure, round, shape, titleBlock } from "../svg.js";
import { edgeEnd } from "./edge_ends.js";
import { endsOf, placeInLayers } from "./layers.js";
import { boundsOf, Turn } from "./turn.js";
import { bodyArea, drawUnit, makeUnit } from "./units.js";

const MARGIN = 12;
const GROUP_PADDING = 14;
const PARALLEL_PX = 16;
const PORT_PX = 26;
const WIDE_PORT_PX = 44; // beside a text at the end of an edge
const CORNER_PX = 10; // of a box, where no edge ends

/** Returns the drawing of a graph, with a title above it. */
export function drawGraph(graph, { name, title }) {
  const picture = layOutGraph(graph);
  const head = titleBlock(title, picture.width + 2 * MARGIN);
  const nodes = picture.draw(head.width / 2, head.height + MARGIN + picture.height / 2);
  return drawing(head.width, head.height + picture.height + 2 * MARGIN, name, ...head.nodes, ...nodes);
}

/**
 * Places a graph. `boxes` are those of `makeUnit`, with `group` (an id or null) and `hasPorts` (edges end beside each other).
 * `edges` have `from` and `to` (ids), `text`, `kind`, `start` and `end` (signs), and perhaps `startText` and `endText`, and
 * `fromInside` and `toInside` (ids of boxes in a box). `groups` have `title` and `parent`.
 * Returns `{ width, height, draw, areas }`: `draw` returns the nodes around a middle, `areas` has the boxes' places from there.
 */
export function layOutGraph({ direction, boxes, edges, groups = new Map(), layerGap }) {
  const turn = new Turn(direction);
  const units = boxes.map((box) => makeUnit(box, { path: pathOf(box.group ?? null, groups), loops: edges.filter((edge) => edge.from === box.id && edge.to === box.id), turn }));
  const byId = new Map(units.map((unit) => [unit.id, unit]));
  const links = edges.filter(({ from, to }) => from !== to).map((edge) => makeLink(edge, byId, turn));
  placeInLayers(units, links, layerGap);
  separateParallels(links);
  placePorts(links);
  const frames = [...groups.values()].map((group) => frame(group, units, turn)).filter((each) => each !== null);
  const bounds = boundsOf([...units.map((unit) => turn.area(unit)), ...frames.map(({ area }) => area), ...links.flatMap((link) => linkAreas(link, turn))]);
  const middle = { x: (bounds.left + bounds.right) / 2, y: (bounds.top + bounds.bottom) / 2 };
  const draw = (x, y) => [shape("g", { transform: `translate(${round(x - middle.x)} ${round(y - middle.y)})` },
    ...frames.sort((one, other) => other.area.width * other.area.height - one.area.width * one.area.height).flatMap(({ nodes }) => nodes),
    ...links.flatMap((link) => (isBesideInside(link) ? [] : drawLink(link, turn))),
    ...units.flatMap((unit) => drawUnit(unit, turn)),
    ...links.flatMap((link) => (isBesideInside(link) ? drawLink(link, turn) : [])),
    ...links.flatMap((link) => drawTexts(link, turn)))];
  return { width: bounds.right - bounds.left, height: bounds.bottom - bounds.top, draw, areas: areasFrom(middle, units, turn) };
}

function pathOf(group, groups) {
  const path = [];
  for (let each = group; each !== null && !path.includes(each); each = groups.get(each).parent) path.unshift(each);
  return path;
}

function makeLink(edge, byId, turn) {
  const lines = edge.text === "" ? [] : linesOf(edge.text);
  const { width, height } = measure(lines);
  const size = lines.length === 0 ? null : turn.size({ width: width + 8, height });
  return { ...edge, from: byId.get(edge.from), to: byId.get(edge.to), lines, label: size, isTurned: false, shift: 0, ports: { upper: 0, lower: 0 } };
}

/** Edges between the same two boxes stand beside each other. */
function separateParallels(links) {
  const bundles = new Map();
  for (const link of links) {
    const key = [link.from.id, link.to.id].sort().join("\n");
    bundles.set(key, [...(bundles.get(key) ?? []), link]);
  }
  for (const bundle of bundles.values()) bundle.forEach((link, index) => (link.shift = (index - (bundle.length - 1) / 2) * PARALLEL_PX));
}

/** Edges of a box with ports end beside each other, in the order of the places from which they come. */
function placePorts(links) {
  const sides = new Map();
  for (const link of links) {
    const { upper, lower } = endsOf(link);
    const [next, previous] = [link.points[0] ?? middleOf(lower), link.points.at(-1) ?? middleOf(upper)];
    for (const [unit, side, towards] of [[upper, "upper", next.x], [lower, "lower", previous.x]]) {
      const ends = sides.get(unit) ?? sides.set(unit, { upper: [], lower: [] }).get(unit);
      ends[side].push({ link, towards });
    }
  }
  for (const [unit, ends] of sides) for (const side of ["upper", "lower"]) placeSide(unit, side, ends[side]);
}

function placeSide(unit, side, ends) {
  if (!unit.box.hasPorts) {
    for (const { link } of ends) link.ports[side] = link.shift;
    return;
  }
  const wish = ends.some(({ link }) => link.startText || link.endText) ? WIDE_PORT_PX : PORT_PX;
  const step = Math.min(wish, (unit.body.width - 2 * CORNER_PX) / Math.max(ends.length - 1, 1));
  ends.sort((one, other) => one.towards - other.towards);
  ends.forEach(({ link }, index) => (link.ports[side] = (index - (ends.length - 1) / 2) * step));
}

function middleOf(unit) {
  return { x: unit.x + unit.anchor, y: unit.y };
}

/** Returns the places of a link from above to below; both ends are at boxes. */
function pointsOf(link, turn) {
  const { upper, lower } = endsOf(link);
  const [upperInside, lowerInside] = link.isTurned ? [link.toInside, link.fromInside] : [link.fromInside, link.toInside];
  return [...endPoints(upper, { sign: 1, port: link.ports.upper, inside: upperInside, turn }), ...link.points, ...endPoints(lower, { sign: -1, port: link.ports.lower, inside: lowerInside, turn }).reverse()];
}

/** Returns where a link leaves a box, and before that the way from a box in the box. */
function endPoints(unit, { sign, port, inside, turn }) {
  const { x, y } = middleOf(unit);
  const border = y + (sign * unit.body.height) / 2;
  if (inside === undefined) return [{ x: x + port, y: border }];
  const area = unit.box.areas.get(inside);
  const [middle, size] = [turn.turnBack(area), turn.size(area)];
  return [{ x: x + middle.x, y: y + middle.y + (sign * size.height) / 2 }, { x: x + middle.x, y: border }];
}

function isBesideInside({ fromInside, toInside }) {
  return fromInside !== undefined || toInside !== undefined;
}

function drawLink(link, turn) {
  if (link.kind === "invisible") return [];
  const points = pointsOf(link, turn);
  const [above, below] = link.isTurned ? [link.end, link.start] : [link.start, link.end];
  const path = points.slice(1).map((point, index) => curve(points[index], point, turn));
  const { x, y } = turn.point(points[0]);
  const ends = [...edgeEnd(above, { x, y }, turn.point({ x: 0, y: -1 })), ...edgeEnd(below, turn.point(points.at(-1)), turn.point({ x: 0, y: 1 }))];
  return [shape("path", { d: `M${round(x)} ${round(y)}${path.join("")}`, class: `edge ${link.kind}` }), ...ends];
}

function curve(from, to, turn) {
  const middle = (from.y + to.y) / 2;
  const points = [{ x: from.x, y: middle }, { x: to.x, y: middle }, to].map((point) => turn.point(point));
  return `C${points.map(({ x, y }) => `${round(x)} ${round(y)}`).join(" ")}`;
}

function drawTexts(link, turn) {
  if (link.kind === "invisible") return [];
  const nodes = endTexts(link, turn).map(({ text, x, y, anchor }) => label([text], x, y, { kind: "label edge-label", anchor }));
  if (link.label === null) return nodes;
  const { x, y } = turn.point(link.labelPlace);
  const { width, height } = measure(link.lines);
  const back = shape("rect", { x: x - width / 2 - 4, y: y - height / 2, width: width + 8, height, class: "label-back" });
  return [back, label(link.lines, x, y, { kind: "label edge-label" }), ...nodes];
}

/** Returns the texts at the ends of a link, beside their signs. */
function endTexts(link, turn) {
  const points = pointsOf(link, turn);
  const [above, below] = link.isTurned ? [link.endText, link.startText] : [link.startText, link.endText];
  return [[above, points[0], 1], [below, points.at(-1), -1]].filter(([text]) => text).map(([written, point, sign]) => {
    const text = linesOf(written)[0];
    const { width } = measure([text]);
    const { x, y } = turn.point({ x: point.x, y: point.y + sign * (turn.isAcross ? width / 2 + 5 : 11) });
    return { text, width, ...(turn.isAcross ? { x, y: y - 11, anchor: "middle" } : { x: x + 9, y, anchor: "start" }) };
  });
}

function linkAreas(link, turn) {
  const places = link.points.map((point) => ({ ...turn.point(point), width: 0, height: 0 }));
  if (link.label !== null) places.push({ ...turn.point(link.labelPlace), ...measure(link.lines) });
  for (const { x, y, width, anchor } of endTexts(link, turn)) places.push({ x: anchor === "start" ? x + width / 2 : x, y, width, height: LINE_PX });
  return places;
}

function frame({ id, title }, units, turn) {
  const members = units.filter(({ path }) => path.includes(id)).map((unit) => ({ area: turn.area(unit), depth: unit.path.length - unit.path.indexOf(id) }));
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

/** Returns the places of all boxes from `middle`, also of those in boxes. */
function areasFrom(middle, units, turn) {
  const areas = new Map();
  for (const unit of units) {
    const { x, y, width, height } = bodyArea(unit, turn);
    areas.set(unit.id, { x: x - middle.x, y: y - middle.y, width, height });
    for (const [id, area] of unit.box.areas ?? []) areas.set(id, { ...area, x: area.x + x - middle.x, y: area.y + y - middle.y });
  }
  return areas;
}
