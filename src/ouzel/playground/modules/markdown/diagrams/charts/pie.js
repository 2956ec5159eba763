// Pies: parts of a whole, each with a name and a number.

import { formatNumber } from "../../../texts/texts.js";
import { drawing, label, linesOf, measure, round, shape } from "../svg.js";
import { TooLarge, Unreadable } from "../statements.js";

const RADIUS = 110;
const MAX_PARTS = 24;
const NUM_COLOURS = 8;

export function draw(statements, names) {
  const { parts, showsData, ...own } = read(statements);
  const title = own.title || names.title;
  const total = parts.reduce((sum, { value }) => sum + value, 0);
  if (parts.length === 0 || total <= 0) throw new Unreadable(statements.at(-1).line);
  const top = title === "" ? 10 : 40;
  const center = { x: RADIUS + 10, y: top + RADIUS };
  const nodes = [];
  let start = 0;
  for (const [index, part] of parts.entries()) {
    const share = part.value / total;
    nodes.push(slice(center, start, start + share, index));
    const middle = (start + share / 2) * 2 * Math.PI;
    const percent = formatNumber(share, { style: "percent", maximumFractionDigits: share < 0.1 ? 1 : 0 });
    if (share >= 0.04) nodes.push(label([percent], center.x + Math.sin(middle) * RADIUS * 0.72, center.y - Math.cos(middle) * RADIUS * 0.72, { kind: "label on-part" }));
    start += share;
  }
  const legend = parts.map(({ name: part, value }) => (showsData ? `${part} [${formatNumber(value)}]` : part));
  const left = center.x + RADIUS + 24;
  for (const [index, text] of legend.entries()) {
    const y = top + 14 + index * 24;
    nodes.push(shape("rect", { x: left, y: y - 8, width: 16, height: 16, class: `part part-${index % NUM_COLOURS}` }));
    nodes.push(label([text], left + 24, y, { anchor: "start" }));
  }
  if (title !== "") nodes.push(label([title], 10, 18, { kind: "label title", anchor: "start" }));
  const width = Math.max(left + 34 + measure(legend).width, measure([title]).width * 1.1 + 20);
  return drawing(width, Math.max(center.y + RADIUS, top + legend.length * 24) + 12, names.name, ...nodes);
}

function read(statements) {
  const [first, ...rest] = statements;
  const head = /^pie(\s+showData)?(?:\s+title\s+(.*))?$/.exec(first.text);
  if (head === null) throw new Unreadable(first.line);
  let title = head[2] ?? "";
  const parts = [];
  for (const { text, line } of rest) {
    const named = /^title\s+(.*)$/.exec(text);
    const part = /^"([^"]{0,200})"\s*:\s*(\d{1,15}(?:\.\d{1,15})?)$/.exec(text);
    if (named !== null) title = named[1];
    else if (part !== null) parts.push({ name: linesOf(part[1])[0], value: Number(part[2]) });
    else throw new Unreadable(line);
    if (parts.length > MAX_PARTS) throw new TooLarge();
  }
  return { title: title.trim() === "" ? "" : linesOf(title)[0], parts, showsData: head[1] !== undefined };
}

function slice({ x, y }, start, end, index) {
  const kind = `part part-${index % NUM_COLOURS}`;
  if (end - start > 0.9999) return shape("circle", { cx: x, cy: y, r: RADIUS, class: kind });
  const at = (turn) => `${round(x + Math.sin(turn * 2 * Math.PI) * RADIUS)} ${round(y - Math.cos(turn * 2 * Math.PI) * RADIUS)}`;
  return shape("path", { d: `M${x} ${y}L${at(start)}A${RADIUS} ${RADIUS} 0 ${end - start > 0.5 ? 1 : 0} 1 ${at(end)}Z`, class: kind });
}
