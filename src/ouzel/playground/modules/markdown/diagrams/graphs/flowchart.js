// Flowcharts: boxes of many shapes, edges between them, and groups.

import { linesOf, measure } from "../svg.js";
import { readFlowchart } from "./flowchart_reader.js";
import { drawGraph } from "./graph_drawing.js";
import { boxShape, sizeFor } from "./shapes.js";

export function draw(statements, names) {
  const { direction, nodes, edges, groups } = readFlowchart(statements);
  return drawGraph({ direction, boxes: [...nodes.values()].map(makeBox), edges, groups }, names);
}

function makeBox({ id, text, shape: kind, group }) {
  const lines = linesOf(text);
  return { id, group, ...sizeFor(kind, measure(lines)), draw: (area) => boxShape({ kind, lines }, area) };
}
