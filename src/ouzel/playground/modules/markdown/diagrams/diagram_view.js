// The picture of a diagram in Mermaid's language. It is drawn by this page, from nodes of SVG; addresses, styles and scripts in
// the code are left out. Each kind is a module, which is loaded with the first diagram of that kind. Kinds without a module say
// that they cannot be drawn.

import { element } from "../../dom.js";
import { loadPart } from "../../later.js";
import { addStyles } from "../../lazy_styles.js";
import { translate } from "../../texts/texts.js";
import { TooLarge, Unreadable } from "./statements.js";

const MAX_LENGTH = 20_000; // characters
const MAX_TITLE = 200;
const flowchart = () => import("./graphs/flowchart.js");
const state = () => import("./graphs/state.js");
const xychart = () => import("./charts/xychart.js");
// Each module has `draw(statements, { name, title })`, which returns the drawing.
const KINDS = {
  graph: flowchart,
  flowchart,
  "flowchart-elk": flowchart,
  stateDiagram: state,
  "stateDiagram-v2": state,
  classDiagram: () => import("./graphs/class.js"),
  "classDiagram-v2": () => import("./graphs/class.js"),
  erDiagram: () => import("./graphs/entities.js"),
  sequenceDiagram: () => import("./sequence.js"),
  mindmap: () => import("./mindmap.js"),
  gantt: () => import("./charts/gantt.js"),
  timeline: () => import("./charts/timeline.js"),
  journey: () => import("./charts/journey.js"),
  pie: () => import("./charts/pie.js"),
  quadrantChart: () => import("./charts/quadrants.js"),
  xychart,
  "xychart-beta": xychart,
};

/** Returns the picture of the code, or the reason why there is none. Returns null where the module of the kind does not come. */
export async function diagramView(code) {
  const shown = await picture(code);
  return shown && element("div", { class: "diagram", role: "group", tabindex: "0", "aria-label": translate("markdown.diagram") }, shown);
}

async function picture(code) {
  await addStyles("diagrams.css");
  try {
    return await draw(code);
  } catch (error) {
    if (error instanceof TooLarge) return said("markdown.diagramTooLarge");
    if (error instanceof Unreadable) return said("markdown.diagramUnreadable", { line: error.line });
    throw error;
  }
}

async function draw(code) {
  if (code.length > MAX_LENGTH) throw new TooLarge();
  const { title, body } = withoutSettings(code);
  const statements = readStatements(body);
  const kind = /^[\w-]+/.exec(statements[0]?.text ?? "")?.[0] ?? "";
  if (!Object.hasOwn(KINDS, kind)) return said("markdown.diagramUnknown", { kind: kind.slice(0, 40) });
  const module = await loadPart(KINDS[kind]);
  return module && module.draw(statements, { name: translate("markdown.diagramOf"), title });
}

/**
 * Returns the lines that are not empty, with their numbers and the width of the blank before them. Blank within a line is one
 * space, because patterns that meet much blank can be slow.
 */
function readStatements(body) {
  const statements = [];
  for (const [index, written] of body.split("\n").entries()) {
    const line = written.replace(/%%.*$/, "");
    const text = line.trim().replace(/\s+/g, " ");
    const indent = /^\s*/.exec(line)[0].replaceAll("\t", "    ").length;
    if (text !== "" && !/^acc(?:Title|Descr)\s*:/.test(text)) statements.push({ text, line: index + 1, indent });
  }
  return statements;
}

/** Blanks out settings and the head before a diagram, and keeps the numbers of lines; the head may have a title. */
function withoutSettings(code) {
  const head = /^\s*---\n[\s\S]*?\n---[ \t]*(?=\n)/.exec(code)?.[0] ?? "";
  const title = /^title:[ \t]*(.*)$/m.exec(head)?.[1].trim().slice(0, MAX_TITLE) ?? "";
  const rest = code.slice(head.length).replace(/%%\{[\s\S]*?\}%%/g, blank).replace(/^[ \t]*accDescr\s*\{[^}]*\}/gm, blank);
  return { title: title.replace(/^'(.*)'$/, "$1"), body: blank(head) + rest };
}

function blank(text) {
  return text.replace(/[^\n]/g, "");
}

function said(key, values = {}) {
  return element("p", { role: "status", text: translate(key, values) });
}
