// Diagrams of entities: tables with attributes, and relations with how many there are at each end.

import { BOLD, label, LINE_PX, linesOf, measure, shape } from "../svg.js";
import { readEntities } from "./entity_reader.js";
import { drawGraph } from "./graph_drawing.js";

const COLUMNS = ["type", "name", "keys", "comment"];
const PADDING_X = 9;
const ROW_PX = LINE_PX + 6;
const HEAD_PX = LINE_PX + 14;
const MIN_WIDTH = 100;
const LAYER_GAP = 64;

export function draw(statements, names) {
  const { direction, entities, relations } = readEntities(statements);
  return drawGraph({ direction, boxes: [...entities.values()].map(makeBox), edges: relations, layerGap: LAYER_GAP }, names);
}

function makeBox({ id, title, attributes }) {
  const [name] = linesOf(title);
  const rows = attributes.map((attribute) => COLUMNS.map((column) => linesOf(attribute[column])[0]));
  const widths = COLUMNS.map((_, index) => measure(rows.map((row) => row[index])).width * BOLD).map((width) => (width === 0 ? 0 : width + 2 * PADDING_X));
  const wide = widths.reduce((sum, width) => sum + width, 0);
  const width = Math.max(MIN_WIDTH, wide, measure([name]).width * BOLD + 4 * PADDING_X);
  if (wide > 0) widths[widths.findLastIndex((each) => each > 0)] += width - wide;
  const height = HEAD_PX + rows.length * ROW_PX + (rows.length === 0 ? 8 : 0);
  return { id, width, height, hasPorts: true, draw: (area) => drawTable({ name, rows, widths }, area) };
}

function drawTable({ name, rows, widths }, { x, y, width, height }) {
  const [left, top] = [x - width / 2, y - height / 2];
  const nodes = [shape("rect", { x: left, y: top, width, height, rx: 3, class: "box" })];
  nodes.push(label([name], x, top + (rows.length === 0 ? height : HEAD_PX) / 2, { kind: "label title" }));
  for (const [index, row] of rows.entries()) {
    const rowTop = top + HEAD_PX + index * ROW_PX;
    if (index % 2 === 0) nodes.push(shape("rect", { x: left + 1, y: rowTop, width: width - 2, height: ROW_PX - (index === rows.length - 1 ? 1 : 0), class: "stripe" }));
    let column = left;
    for (const [place, text] of row.entries()) {
      if (text !== "") nodes.push(label([text], column + PADDING_X, rowTop + ROW_PX / 2, { kind: `label ${COLUMNS[place]}`, anchor: "start" }));
      column += widths[place];
    }
  }
  if (rows.length > 0) nodes.push(shape("line", { x1: left, x2: left + width, y1: top + HEAD_PX, y2: top + HEAD_PX, class: "rule" }));
  return nodes;
}
