// Gantt charts: tasks as bars over days, below each other, in sections.

import { LANGUAGE } from "../../../texts/texts.js";
import { BOLD, drawing, label, LINE_PX, linesOf, measure, shape, titleBlock } from "../svg.js";
import { makeTicks, writeDate } from "./dates.js";
import { readGantt } from "./gantt_reader.js";

const MARGIN = 14;
const CHART_PX = 620;
const ROW_PX = 30;
const BAR_PX = 22;
const AXIS_PX = 30;
const GAP = 6; // between a bar and its text
const MAX_TICKS = 12;
const NUM_TONES = 8;
const TICK_FORMATS = { minute: "%H:%M", hour: "%H:%M", day: "%d %b", week: "%d %b", month: "%b %Y", year: "%Y" };

export function draw(statements, { name, title }) {
  const chart = readGantt(statements);
  const tasks = chart.sections.flatMap((section) => section.tasks);
  const start = Math.min(...tasks.map((task) => task.start));
  const end = Math.max(...tasks.map((task) => task.end), start + 1);
  const scale = (time) => ((time - start) / (end - start)) * CHART_PX;
  const bars = tasks.map((task) => placeBar(task, scale));
  const rows = placeRows(chart.sections, new Map(tasks.map((task, index) => [task, bars[index]])));
  const left = Math.min(0, ...bars.map((bar) => bar.left));
  const right = Math.max(CHART_PX, ...bars.map((bar) => bar.right), ...rows.bands.map(({ lines }) => left + measure(lines).width * BOLD + 16));
  const width = right - left + 2 * MARGIN;
  const head = titleBlock(chart.title || title, width);
  const move = `translate(${Math.round(MARGIN - left + (head.width - width) / 2)} ${Math.round(head.height + MARGIN)})`;
  const ticks = makeTicks(start, end, { max: MAX_TICKS, wish: chart.tickInterval });
  const nodes = [
    ...rows.bands.filter((_, index) => index % 2 === 1).map(({ top, height }) => shape("rect", { x: left - MARGIN / 2, y: top, width: right - left + MARGIN, height, class: "stripe" })),
    ...ticks.ticks.map((tick) => shape("line", { x1: scale(tick), x2: scale(tick), y1: AXIS_PX - 6, y2: rows.height, class: "grid" })),
    ...rows.bands.map(({ lines, top }) => label(lines, left, top + 4 + (lines.length * LINE_PX) / 2, { kind: "label group-title", anchor: "start" })),
    ...drawTickTexts(ticks, chart.axisFormat, scale),
    ...bars.flatMap(drawBar),
  ];
  return drawing(head.width, head.height + rows.height + 2 * MARGIN, name, ...head.nodes, shape("g", { transform: move }, ...nodes));
}

/** Places a bar and its text: in the bar, or behind it, or before it where that is shorter. */
function placeBar({ name, tags, start, end }, scale) {
  const lines = linesOf(name);
  const isPoint = tags.includes("milestone") || tags.includes("vert");
  const [from, to] = isPoint ? [scale((start + end) / 2), scale((start + end) / 2)] : [scale(start), Math.max(scale(end), scale(start) + 3)];
  const { width } = measure(lines);
  const half = tags.includes("milestone") ? BAR_PX / 2 : 0;
  const bar = { lines, tags, from, to, width };
  if (!isPoint && width + 2 * GAP <= to - from) return { ...bar, place: "inside", left: from, right: to };
  const isBehind = to + half + GAP + width <= CHART_PX || from - half - GAP - width < 0;
  return isBehind ? { ...bar, place: "behind", left: from - half, right: to + half + GAP + width } : { ...bar, place: "before", left: from - half - GAP - width, right: to + half };
}

/** Each task has a row of its own; a section has one more, for its name. */
function placeRows(sections, bars) {
  let y = AXIS_PX;
  const bands = [];
  for (const [index, { name, tasks }] of sections.entries()) {
    const lines = name.trim() === "" ? [] : linesOf(name);
    const top = y;
    y += lines.length * LINE_PX + (lines.length > 0 ? 8 : 2);
    for (const task of tasks) {
      Object.assign(bars.get(task), { y: y + ROW_PX / 2, tone: index % NUM_TONES });
      y += Math.max(ROW_PX, bars.get(task).lines.length * LINE_PX + 6);
    }
    y += 4;
    bands.push({ lines, top, height: y - top });
  }
  for (const bar of bars.values()) bar.bottom = y;
  return { bands, height: y };
}

/** Draws the dates of the ticks that have room. */
function drawTickTexts({ unit, ticks }, format, scale) {
  const nodes = [];
  let end = -Infinity;
  for (const tick of ticks) {
    const text = writeDate(tick, format || TICK_FORMATS[unit] || "%H:%M:%S", LANGUAGE);
    const { width } = measure([text]);
    const x = Math.min(Math.max(scale(tick), width / 2 - MARGIN / 2), CHART_PX - width / 2 + MARGIN / 2);
    if (x - width / 2 < end + 8) continue;
    nodes.push(label([text], x, AXIS_PX / 2 - 4, { kind: "label muted" }));
    end = x + width / 2;
  }
  return nodes;
}

function drawBar({ lines, tags, from, to, width, place, y, tone, bottom }) {
  const x = { inside: (from + to) / 2, behind: to + GAP + (tags.includes("milestone") ? BAR_PX / 2 : 0) + width / 2, before: from - GAP - (tags.includes("milestone") ? BAR_PX / 2 : 0) - width / 2 }[place];
  const kinds = tags.map((tag) => ` ${tag}`).join("");
  const text = label(lines, x, y);
  if (tags.includes("vert")) return [shape("line", { x1: from, x2: from, y1: AXIS_PX, y2: bottom, class: "vert" }), text];
  const half = BAR_PX / 2;
  if (tags.includes("milestone")) return [shape("polygon", { points: `${from} ${y - half} ${from + half} ${y} ${from} ${y + half} ${from - half} ${y}`, class: `bar tone-${tone}${kinds}` }), text];
  return [shape("rect", { x: from, y: y - half, width: to - from, height: BAR_PX, rx: 3, class: `bar tone-${tone}${kinds}` }), text];
}
