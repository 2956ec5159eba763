// Journeys: tasks below each other, each with a score from 1 to 5 and the people who do it.

import { BOLD, drawing, label, LINE_PX, linesOf, measure, round, shape, titleBlock } from "../svg.js";
import { TooLarge, Unreadable } from "../statements.js";

const MAX_TASKS = 100;
const MAX_PEOPLE = 20;
const MAX_LINE = 36; // characters
const NUM_SCORES = 5;
const MARGIN = 14;
const GAP = 20;
const SCORE_PX = 40;
const AXIS_PX = 26;
const NUM_TONES = 8;
const TASK = /^([^:]{1,200}):\s*(\d{1,2}(?:\.\d{1,2})?)\s*(?::\s*(.*))?$/;

export function draw(statements, { name, title: outerTitle }) {
  const { title, sections } = read(statements);
  const tasks = sections.flatMap((section) => section.tasks);
  const left = Math.max(...tasks.map(({ lines }) => measure(lines).width), ...sections.map(({ lines }) => measure(lines).width * BOLD));
  const right = Math.max(0, ...tasks.map(({ people }) => measure(people).width));
  const width = left + NUM_SCORES * SCORE_PX + 2 * GAP + right + 2 * MARGIN;
  const head = titleBlock(title || outerTitle, width);
  const start = MARGIN + (head.width - width) / 2;
  const scale = (score) => start + left + GAP + (score - 0.5) * SCORE_PX;
  const nodes = [];
  const points = [];
  let y = head.height + MARGIN + AXIS_PX;
  for (const [index, section] of sections.entries()) {
    if (section.lines.length > 0) {
      nodes.push(label(section.lines, start, y + (section.lines.length * LINE_PX) / 2, { kind: "label group-title", anchor: "start" }));
      y += section.lines.length * LINE_PX + 6;
    }
    for (const task of section.tasks) {
      const height = Math.max(task.lines.length, task.people.length, 1) * LINE_PX + 10;
      const point = { x: scale(task.score), y: y + height / 2, tone: index % NUM_TONES };
      points.push(point);
      nodes.push(label(task.lines, start, point.y, { anchor: "start" }));
      nodes.push(label(task.people, scale(NUM_SCORES + 0.5) + GAP, point.y, { kind: "label muted", anchor: "start" }));
      y += height;
    }
    y += 6;
  }
  const top = head.height + MARGIN;
  const line = shape("polyline", { points: points.map((point) => `${round(point.x)} ${round(point.y)}`).join(" "), class: "edge" });
  const dots = points.map((point) => shape("circle", { cx: point.x, cy: point.y, r: 8, class: `point tone-${point.tone}` }));
  return drawing(head.width, y + MARGIN, name, ...head.nodes, ...drawAxis(scale, top, y), line, ...dots, ...nodes);
}

function drawAxis(scale, top, bottom) {
  const nodes = [];
  for (let score = 1; score <= NUM_SCORES; score += 1) {
    nodes.push(shape("line", { x1: scale(score), x2: scale(score), y1: top + AXIS_PX - 4, y2: bottom, class: "grid" }));
    nodes.push(label([String(score)], scale(score), top + LINE_PX / 2, { kind: "label muted" }));
  }
  return nodes;
}

function read([first, ...rest]) {
  if (first.text !== "journey") throw new Unreadable(first.line);
  const journey = { title: "", sections: [] };
  let numTasks = 0;
  for (const { text, line } of rest) {
    const title = /^title:?\s+(.*)$/.exec(text);
    const section = /^section\s+(.*)$/.exec(text);
    const task = TASK.exec(text);
    if (title !== null) journey.title = title[1];
    else if (section !== null) journey.sections.push({ lines: linesOf(section[1]), tasks: [] });
    else if (task !== null) {
      const [, words, written, people = ""] = task;
      const names = people.split(",").map((each) => each.trim()).filter((each) => each !== "");
      if (names.length > MAX_PEOPLE) throw new TooLarge();
      if (journey.sections.length === 0) journey.sections.push({ lines: [], tasks: [] });
      const score = Math.min(Math.max(Number(written), 1), NUM_SCORES);
      journey.sections.at(-1).tasks.push({ lines: linesOf(words, MAX_LINE), score, people: names.length === 0 ? [] : linesOf(names.join(", "), MAX_LINE) });
      numTasks += 1;
    } else throw new Unreadable(line);
    if (numTasks > MAX_TASKS || journey.sections.length > MAX_TASKS) throw new TooLarge();
  }
  if (numTasks === 0) throw new Unreadable(first.line);
  return journey;
}
