// The signs at the ends of edges: arrows, triangles and diamonds of classes, and the numbers of entities.

import { arrowHead, round, shape } from "../svg.js";

const LINES = { // offsets along the edge from its end, and to its side
  one: [[[7, -6], [7, 6]], [[12, -6], [12, 6]]],
  "zero-or-one": [[[7, -6], [7, 6]]],
  many: [[[12, 0], [0, -6]], [[12, 0], [0, 6]], [[15, -6], [15, 6]]],
  "zero-or-many": [[[12, 0], [0, -6]], [[12, 0], [0, 6]]],
};
const CIRCLES = { "zero-or-one": 13, "zero-or-many": 17, lollipop: 6 };
const OUTLINES = {
  triangle: [[0, 0], [13, -7], [13, 7]],
  diamond: [[0, 0], [9, -5.5], [18, 0], [9, 5.5]],
  "hollow-diamond": [[0, 0], [9, -5.5], [18, 0], [9, 5.5]],
};

/** Returns the nodes of a sign at a place. `direction` leads into the box, and has the length 1. */
export function edgeEnd(kind, point, direction) {
  if (kind === "") return [];
  const at = ([along, aside]) => [point.x - along * direction.x - aside * direction.y, point.y - along * direction.y + aside * direction.x].map(round);
  if (Object.hasOwn(OUTLINES, kind)) {
    const points = OUTLINES[kind].map((offsets) => at(offsets).join(" ")).join(" ");
    return [shape("polygon", { points, class: kind === "diamond" ? "head" : "hollow-head" })];
  }
  if (!Object.hasOwn(LINES, kind) && !Object.hasOwn(CIRCLES, kind)) return [arrowHead(point.x, point.y, direction.x, direction.y, kind)];
  const nodes = [];
  const path = (LINES[kind] ?? []).map(([from, to]) => `M${at(from).join(" ")}L${at(to).join(" ")}`).join("");
  if (path !== "") nodes.push(shape("path", { d: path, class: "edge" }));
  if (Object.hasOwn(CIRCLES, kind)) {
    const [cx, cy] = at([CIRCLES[kind], 0]);
    nodes.push(shape("circle", { cx, cy, r: 5, class: "hollow-head" }));
  }
  return nodes;
}
