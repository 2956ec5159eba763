// Diagrams of classes: boxes with a name, fields and methods, and relations between them.

import { BOLD, label, LINE_PX, linesOf, measure, shape } from "../svg.js";
import { readClasses } from "./class_reader.js";
import { drawGraph } from "./graph_drawing.js";
import { drawNote } from "./units.js";

const PADDING_X = 12;
const PADDING_Y = 7;
const MIN_WIDTH = 70;
const LAYER_GAP = 54;

export function draw(statements, names) {
  const { direction, classes, relations, groups, notes } = readClasses(statements);
  const boxes = [...classes.values()].map(makeBox);
  for (const [index, text] of notes.entries()) boxes.push(makeNoteBox(`note ${index}`, text));
  return drawGraph({ direction, boxes, edges: relations, groups, layerGap: LAYER_GAP }, names);
}

function makeBox({ id, title, kinds, members, notes, group }) {
  const head = [...kinds.map((kind) => ({ text: `«${kind}»`, kind: "label" })), ...linesOf(withTypes(title)).map((text) => ({ text, kind: "label title" }))];
  const read = members.map(readMember);
  const parts = [read.filter(({ isMethod }) => !isMethod), read.filter(({ isMethod }) => isMethod)];
  const width = Math.max(MIN_WIDTH, measure(head.map(({ text }) => text)).width * BOLD, measure(read.map(({ text }) => text)).width) + 2 * PADDING_X;
  const rows = [head, ...parts.filter((part) => part.length > 0)];
  const height = rows.reduce((sum, each) => sum + heightFor(each), 0);
  return { id, group, notes, width, height, hasPorts: true, draw: (area) => drawClass(rows, area) };
}

function drawClass(rows, { x, y, width, height }) {
  const left = x - width / 2;
  let top = y - height / 2;
  const nodes = [shape("rect", { x: left, y: top, width, height, rx: 3, class: "box" })];
  for (const [part, lines] of rows.entries()) {
    if (part > 0) nodes.push(shape("line", { x1: left, x2: left + width, y1: top, y2: top, class: "rule" }));
    for (const [index, { text, kind }] of lines.entries()) {
      const middle = top + PADDING_Y + (index + 0.5) * LINE_PX;
      nodes.push(part === 0 ? label([text], x, middle, { kind }) : label([text], left + PADDING_X, middle, { kind, anchor: "start" }));
    }
    top += heightFor(lines);
  }
  return nodes;
}

function heightFor(lines) {
  return lines.length * LINE_PX + 2 * PADDING_Y;
}

/** A member with brackets is a method; its sign at the end makes it abstract or static. */
function readMember(written) {
  const [, before, sign, after] = /^(.*\))([*$])(.*)$/.exec(written) ?? /^(.*?)([*$]?)()$/.exec(written);
  const text = before + after;
  const isMethod = text.includes("(");
  const result = isMethod ? text.replace(/\)\s*:?\s*(?=[^\s:)(])(?=[^()]*$)/, ") : ") : text;
  return { text: linesOf(withTypes(result))[0], isMethod, kind: { "*": "label abstract", $: "label static" }[sign] ?? "label" };
}

/** Writes `List~int~` as `List<int>`, also within each other: a mark before a letter opens while it can be closed again. */
function withTypes(text) {
  let [numLeft, depth] = [text.match(/~/g)?.length ?? 0, 0];
  if (numLeft === 1) return text;
  return text.replace(/~/g, (mark, place) => {
    numLeft -= 1;
    const opens = depth === 0 || (/[\p{L}\p{N}]/u.test(text[place + 1] ?? "") && numLeft > depth);
    depth += opens ? 1 : -1;
    return opens ? "<" : ">";
  });
}

function makeNoteBox(id, text) {
  const lines = linesOf(text);
  const { width, height } = measure(lines);
  return { id, width: width + 20, height: height + 12, draw: (area) => drawNote(lines, area) };
}
