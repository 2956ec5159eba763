// Quadrant charts: points in a square with two axes, whose quarters have names.

import { BOLD, drawing, label, LINE_PX, linesOf, measure, shape, titleBlock } from "../svg.js";
import { TooLarge, Unreadable } from "../statements.js";

const MAX_POINTS = 60;
const MAX_LINE = 24; // characters
const MARGIN = 14;
const SIDE_PX = 460;
const HALF_PX = SIDE_PX / 2;
const POINT_PX = 5;
const CORNERS = { 1: [HALF_PX, 0], 2: [0, 0], 3: [0, HALF_PX], 4: [HALF_PX, HALF_PX] };
const AXIS = /^([xy])-axis\s+(.+?)(?:\s*-->\s*(.*))?$/;
const QUADRANT = /^quadrant-([1-4])\s+(.*)$/;
const NUMBER = "([01](?:\\.\\d{1,9})?|\\.\\d{1,9})";
const POINT = new RegExp(`^(.{1,200}?)(?::::[\\w-]+)?\\s*:\\s*\\[\\s*${NUMBER}\\s*,\\s*${NUMBER}\\s*\\]\\s*((?:radius|color|stroke-color|stroke-width)\\b.*)?$`);

export function draw(statements, { name, title: outerTitle }) {
  const { title, axes, quadrants, points } = read(statements);
  const titles = placeTitles(quadrants);
  const names = placeNames(points, titles);
  const bottom = axes.x.some(({ length }) => length > 0) ? Math.max(...axes.x.map((lines) => lines.length)) * LINE_PX + 8 : 0;
  const left = Math.max(0, ...axes.y.map((lines) => measure(lines).width + 12));
  const over = Math.max(0, ...names.map(({ right }) => right - SIDE_PX));
  const width = left + SIDE_PX + over + 2 * MARGIN;
  const head = titleBlock(title || outerTitle, width);
  const origin = { x: MARGIN + left + (head.width - width) / 2, y: head.height + MARGIN };
  const nodes = [...drawQuadrants(), ...drawAxes(axes), ...titles.map(({ lines, x, y }) => label(lines, x, y, { kind: "label group-title muted" }))];
  for (const { x, y } of points) nodes.push(shape("circle", { cx: x * SIDE_PX, cy: (1 - y) * SIDE_PX, r: POINT_PX, class: "point tone-0" }));
  for (const { lines, x, y } of names) nodes.push(label(lines, x, y));
  const moved = shape("g", { transform: `translate(${Math.round(origin.x)} ${Math.round(origin.y)})` }, ...nodes);
  return drawing(head.width, origin.y + SIDE_PX + bottom + MARGIN, name, ...head.nodes, moved);
}

function drawQuadrants() {
  return Object.entries(CORNERS).map(([number, [x, y]]) => shape("rect", { x, y, width: HALF_PX, height: HALF_PX, class: `quadrant tone-${number - 1}` }));
}

function placeTitles(quadrants) {
  return Object.entries(quadrants).map(([number, lines]) => {
    const [x, y] = CORNERS[number];
    const { width, height } = measure(lines);
    return { lines, ...makeArea(x + HALF_PX / 2, y + 8 + height / 2, width * BOLD, height) };
  });
}

function drawAxes({ x: [low, high], y: [lower, upper] }) {
  const [one, other] = high.length === 0 ? [SIDE_PX / 2, SIDE_PX] : [SIDE_PX / 4, (SIDE_PX * 3) / 4];
  const below = (lines) => SIDE_PX + 8 + (lines.length * LINE_PX) / 2;
  return [
    label(low, one, below(low)),
    label(high, other, below(high)),
    label(lower, -10, upper.length === 0 ? SIDE_PX / 2 : (SIDE_PX * 3) / 4, { anchor: "end" }),
    label(upper, -10, SIDE_PX / 4, { anchor: "end" }),
  ];
}

/** Names stand above their points, or where another text stands there below or beside them. */
function placeNames(points, titles) {
  const taken = [...points.map(({ x, y }) => makeArea(x * SIDE_PX, (1 - y) * SIDE_PX, 2 * POINT_PX, 2 * POINT_PX)), ...titles];
  return points.map(({ lines, x, y }, index) => {
    const [px, py] = [x * SIDE_PX, (1 - y) * SIDE_PX];
    const { width, height } = measure(lines);
    const aside = POINT_PX + 4 + width / 2;
    const above = POINT_PX + 2 + height / 2;
    const places = [[0, -above], [0, above], [aside, 0], [-aside, 0], [aside, -above], [-aside, -above], [aside, above], [-aside, above]].map(([dx, dy]) => makeArea(px + dx, py + dy, width, height));
    const isFree = (area) => area.left >= 0 && area.top >= 0 && area.bottom <= SIDE_PX && taken.every((other, place) => place === index || !overlap(area, other));
    const found = places.find((area) => isFree(area) && area.right <= SIDE_PX) ?? places.find(isFree) ?? places[2];
    taken.push(found);
    return { lines, ...found };
  });
}

function makeArea(x, y, width, height) {
  return { x, y, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

function read([first, ...rest]) {
  if (first.text !== "quadrantChart") throw new Unreadable(first.line);
  const chart = { title: "", axes: { x: [[], []], y: [[], []] }, quadrants: {}, points: [] };
  for (const { text, line } of rest) {
    if (!take(text, chart)) throw new Unreadable(line);
    if (chart.points.length > MAX_POINTS) throw new TooLarge();
  }
  if (chart.points.length === 0 && Object.keys(chart.quadrants).length === 0) throw new Unreadable(first.line);
  return chart;
}

/** Tells whether the statement could be read. */
function take(text, chart) {
  const [title, axis, quadrant, point] = [/^title\s+(.*)$/, AXIS, QUADRANT, POINT].map((pattern) => pattern.exec(text));
  if (title !== null) chart.title = title[1];
  else if (axis !== null) chart.axes[axis[1]] = [axis[2], axis[3] ?? ""].map((side) => (side.trim() === "" ? [] : linesOf(side, MAX_LINE)));
  else if (quadrant !== null) chart.quadrants[quadrant[1]] = linesOf(quadrant[2], Math.round(MAX_LINE / BOLD));
  else if (point !== null && Number(point[2]) <= 1 && Number(point[3]) <= 1) chart.points.push({ lines: linesOf(point[1], MAX_LINE), x: Number(point[2]), y: Number(point[3]) });
  else return /^classDef\b/.test(text);
  return true;
}
