// The picture of a diagram in Mermaid's language, for three kinds: flowcharts, sequences and pies. It is drawn by this page, from
// nodes of SVG; addresses, styles and scripts in the code are left out. Other kinds say that they cannot be drawn.

import { element } from "../../dom.js";
import { translate } from "../../texts/texts.js";
import { drawFlowchart } from "./flowchart.js";
import { drawPie } from "./pie.js";
import { drawSequence } from "./sequence.js";
import { TooLarge, Unreadable } from "./statements.js";

const MAX_LENGTH = 20_000; // characters
const KINDS = { graph: drawFlowchart, flowchart: drawFlowchart, sequenceDiagram: drawSequence, pie: drawPie };

/** Returns the picture of the code, or the reason why there is none. */
export function diagramView(code) {
  return element("div", { class: "diagram", role: "group", tabindex: "0", "aria-label": translate("markdown.diagram") }, picture(code));
}

function picture(code) {
  try {
    return draw(code);
  } catch (error) {
    if (error instanceof TooLarge) return said("markdown.diagramTooLarge");
    if (error instanceof Unreadable) return said("markdown.diagramUnreadable", { line: error.line });
    throw error;
  }
}

function draw(code) {
  if (code.length > MAX_LENGTH) throw new TooLarge();
  const lines = withoutSettings(code).split("\n").map((line) => line.replace(/%%.*$/, "").trim());
  const first = lines.findIndex((line) => line !== "");
  const kind = /^[\w-]+/.exec(lines[first] ?? "")?.[0] ?? "";
  if (!Object.hasOwn(KINDS, kind)) return said("markdown.diagramUnknown", { kind: kind.slice(0, 40) });
  const statements = lines.map((text, index) => ({ text, line: index + 1 })).filter(({ text }) => text !== "");
  return KINDS[kind](statements, translate("markdown.diagramOf"));
}

/** Blanks out settings before a diagram, and keeps the numbers of lines. */
function withoutSettings(code) {
  const head = /^\s*---\n[\s\S]*?\n---[ \t]*(?=\n)/.exec(code)?.[0] ?? "";
  return head.replace(/[^\n]/g, "") + code.slice(head.length).replace(/%%\{[\s\S]*?\}%%/g, (settings) => settings.replace(/[^\n]/g, ""));
}

function said(key, values = {}) {
  return element("p", { role: "status", text: translate(key, values) });
}
