// Places of boxes in layers, so that edges lead from one layer to the next (as Sugiyama's method): edges of circles are turned
// round, boxes get the layer behind their farthest predecessor, long edges get a place in each layer between, each layer is
// ordered by the neighbours of its boxes, and boxes move towards their neighbours as far as there is room.

import { TooLarge } from "../statements.js";

const MAX_PLACES = 3000; // long edges have many
const LAYER_GAP = 44;
const BOX_GAP = 26;
const GROUP_GAP = 22; // more of it between boxes of two groups
const MAX_ROW_PX = 900; // of parts beside each other
const NUM_SWEEPS = 10;
const LONG_WEIGHT = 4; // of the pieces of a long edge, which is to be straight

/**
 * Sets `x` and `y` (their middles) of `boxes`, which have `width`, `height`, `anchor` (where edges end, from the middle), `path`
 * (their groups from the outside) and perhaps `end` ("first" or "last": a layer before or behind all others). `edges` have `from`, `to`, and `label` with a size, which gets a place too. Sets `points` of edges.
 */
export function placeInLayers(boxes, edges, layerGap = LAYER_GAP) {
  turnCirclesRound(boxes, edges);
  rankBoxes(boxes, edges);
  const links = [];
  const all = [...boxes];
  for (const edge of edges) {
    split(edge, all, links);
    if (all.length > MAX_PLACES) throw new TooLarge();
  }
  const neighbours = neighboursOf(all, links);
  const parts = findParts(all, neighbours);
  for (const part of parts) {
    const layers = makeLayers(part);
    order(layers, neighbours);
    spread(layers, neighbours);
    stack(layers, layerGap);
  }
  putBeside(parts, layerGap);
  for (const edge of edges) edge.points = edge.via.map(({ x, y }) => ({ x, y }));
}

/** Returns the parts of the graph that no edge and no group connects. */
function findParts(all, neighbours) {
  const ofGroup = new Map();
  for (const box of all) if (box.path.length > 0) ofGroup.set(box.path[0], [...(ofGroup.get(box.path[0]) ?? []), box]);
  const parts = [];
  const found = new Set();
  for (const root of all) {
    if (found.has(root)) continue;
    const part = [];
    const open = [root];
    found.add(root);
    while (open.length > 0) {
      const box = open.pop();
      part.push(box);
      const { above, below } = neighbours.get(box);
      for (const next of [...above, ...below, ...(ofGroup.get(box.path[0]) ?? [])]) {
        if (found.has(next)) continue;
        found.add(next);
        open.push(next);
      }
      if (box.path.length > 0) ofGroup.delete(box.path[0]); // all of them are found now
    }
    parts.push(part.sort((one, other) => one.index - other.index));
  }
  return parts;
}

/** Parts stand beside each other, in as many rows as they need. */
function putBeside(parts, layerGap) {
  const sizes = parts.map((part) => ({
    left: Math.min(...part.map(({ x, width }) => x - width / 2)) - groupRoom(part),
    right: Math.max(...part.map(({ x, width }) => x + width / 2)) + groupRoom(part),
    bottom: Math.max(...part.map(({ y, height }) => y + height / 2)),
  }));
  const limit = Math.max(MAX_ROW_PX, ...sizes.map(({ left, right }) => right - left));
  let [x, top, bottom] = [0, 0, 0];
  for (const [index, part] of parts.entries()) {
    const width = sizes[index].right - sizes[index].left;
    if (x > 0 && x + width > limit) [x, top] = [0, bottom + layerGap];
    for (const box of part) {
      box.x += x - sizes[index].left;
      box.y += top;
    }
    bottom = Math.max(bottom, top + sizes[index].bottom);
    x += width + BOX_GAP;
  }
}

/** Returns the room for the frames of groups around a part. */
function groupRoom(part) {
  return Math.max(...part.map(({ path }) => path.length)) * GROUP_GAP;
}

/** Turns edges that lead back into a circle: sets their `isTurned`. `boxes` and `edges` decide in their order. */
export function turnCirclesRound(boxes, edges) {
  const outgoing = new Map(boxes.map((box) => [box, []]));
  for (const edge of edges) outgoing.get(edge.from).push(edge);
  const state = new Map();
  for (const root of boxes) {
    if (state.has(root)) continue;
    const path = [{ box: root, next: 0 }];
    state.set(root, "open");
    while (path.length > 0) {
      const step = path.at(-1);
      const edge = outgoing.get(step.box)[step.next];
      step.next += 1;
      if (edge === undefined) state.set(path.pop().box, "done");
      else if (state.get(edge.to) === "open") edge.isTurned = edge.from !== edge.to;
      else if (!state.has(edge.to)) {
        state.set(edge.to, "open");
        path.push({ box: edge.to, next: 0 });
      }
    }
  }
}

function rankBoxes(boxes, edges) {
  const hasFirst = boxes.some(({ end }) => end === "first");
  for (const box of boxes) box.layer = hasFirst && box.end !== "first" ? 1 : 0;
  const steps = edges.filter(({ from, to }) => from !== to).map((edge) => ({ ...endsOf(edge), length: edge.label === null ? 1 : 2 }));
  for (let hasMoved = true, round = 0; hasMoved && round <= boxes.length; round += 1) {
    hasMoved = false;
    for (const { upper, lower, length } of steps) {
      if (lower.layer >= upper.layer + length) continue;
      lower.layer = upper.layer + length;
      hasMoved = true;
    }
  }
  const numLayers = Math.max(...boxes.map(({ layer }) => layer)) + 1;
  for (const box of boxes) if (box.end === "last") box.layer = numLayers;
}

/** A long edge goes by a place in each layer between; its label has the middle one. */
function split(edge, all, links) {
  const { upper, lower } = endsOf(edge);
  edge.via = [];
  if (upper === lower) return;
  const middle = Math.floor((upper.layer + lower.layer) / 2);
  let before = upper;
  for (let layer = upper.layer + 1; layer < lower.layer; layer += 1) {
    const isLabel = edge.label !== null && layer === middle;
    const path = upper.path.filter((group) => lower.path.includes(group));
    const place = { layer, path, anchor: 0, isPlace: true, width: isLabel ? edge.label.width + 8 : 6, height: isLabel ? edge.label.height + 4 : 0 };
    if (isLabel) edge.labelPlace = place;
    edge.via.push(place);
    all.push(place);
    links.push([before, place]);
    before = place;
  }
  links.push([before, lower]);
}

/** Returns the box above and the box below. */
export function endsOf({ from, to, isTurned }) {
  return isTurned ? { upper: to, lower: from } : { upper: from, lower: to };
}

function makeLayers(all) {
  const layers = [];
  for (const box of all) (layers[box.layer] ??= []).push(box);
  return [...layers].map((layer) => layer ?? []);
}

function neighboursOf(all, links) {
  all.forEach((box, index) => (box.index = index));
  const neighbours = new Map(all.map((box) => [box, { above: [], below: [] }]));
  for (const [upper, lower] of links) {
    neighbours.get(upper).below.push(lower);
    neighbours.get(lower).above.push(upper);
  }
  return neighbours;
}

function order(layers, neighbours) {
  const renumber = (layer) => layer.forEach((box, index) => (box.place = (index + 0.5) / layer.length));
  layers.forEach(renumber);
  for (let sweep = 0; sweep < NUM_SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? layers : [...layers].reverse()) {
      for (const box of layer) box.wish = mean(neighbours.get(box)[isDown ? "above" : "below"].map(({ place }) => place)) ?? box.place;
      sortByGroups(layer, 0);
      renumber(layer);
    }
  }
}

/** Sorts by wishes; boxes of a group stay beside each other. */
function sortByGroups(layer, depth) {
  const units = new Map();
  for (const box of layer) {
    const key = box.path[depth] ?? box;
    if (!units.has(key)) units.set(key, []);
    units.get(key).push(box);
  }
  const sorted = [...units.entries()].sort(([, one], [, other]) => mean(one.map(({ wish }) => wish)) - mean(other.map(({ wish }) => wish)));
  layer.length = 0;
  for (const [key, boxes] of sorted) {
    if (typeof key === "string" && boxes.length > 1) sortByGroups(boxes, depth + 1);
    layer.push(...boxes);
  }
}

/** Boxes move towards their neighbours, and keep their order and distance. */
function spread(layers, neighbours) {
  for (const layer of layers) layer.reduce((left, box) => ((box.x = left + box.width / 2), left + box.width + BOX_GAP), 0);
  for (let sweep = 0; sweep < NUM_SWEEPS * 2; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? layers : [...layers].reverse()) {
      const sides = sweep < NUM_SWEEPS ? [isDown ? "above" : "below"] : ["above", "below"];
      const wishes = layer.map((box) => wishFor(box, sides.flatMap((side) => neighbours.get(box)[side])));
      settle(layer, wishes);
    }
  }
}

/** Returns the middle of the neighbours, of which those on the same long edge count most. */
function wishFor(box, neighbours) {
  let [sum, total] = [0, 0];
  for (const { x, anchor, isPlace } of neighbours) {
    const weight = isPlace && box.isPlace ? LONG_WEIGHT : 1;
    sum += weight * (x + anchor - box.anchor);
    total += weight;
  }
  return total === 0 ? box.x : sum / total;
}

/** Each box gets the place between the leftmost and the rightmost places that the others' wishes leave it. */
function settle(layer, wishes) {
  const gap = (one, other) => (one.width + other.width) / 2 + BOX_GAP + (one.path.at(-1) === other.path.at(-1) ? 0 : GROUP_GAP);
  const fromLeft = [...wishes];
  for (let index = 1; index < layer.length; index += 1) fromLeft[index] = Math.max(wishes[index], fromLeft[index - 1] + gap(layer[index - 1], layer[index]));
  const fromRight = [...wishes];
  for (let index = layer.length - 2; index >= 0; index -= 1) fromRight[index] = Math.min(wishes[index], fromRight[index + 1] - gap(layer[index], layer[index + 1]));
  layer.forEach((box, index) => (box.x = (fromLeft[index] + fromRight[index]) / 2));
}

function stack(layers, layerGap) {
  let top = 0;
  for (const layer of layers) {
    const height = Math.max(0, ...layer.map((box) => box.height));
    for (const box of layer) box.y = top + height / 2;
    top += height + layerGap;
  }
}

function mean(numbers) {
  return numbers.length === 0 ? null : numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
