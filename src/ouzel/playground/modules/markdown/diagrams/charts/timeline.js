// Timelines: periods below each other, with their events beside them, in sections.

import { BOLD, drawing, label, LINE_PX, linesOf, measure, shape, titleBlock } from "../svg.js";
import { TooLarge, Unreadable } from "../statements.js";

const MAX_PERIODS = 100;
const MAX_EVENTS = 300;
const MAX_PERIOD_LINE = 22; // characters
const MAX_EVENT_LINE = 48;
const MARGIN = 14;
const PADDING = 10;
const GAP = 8;
const AXIS_PX = 36; // from the periods to the events
const NUM_TONES = 8;

export function draw(statements, { name, title: outerTitle }) {
  const { title, sections } = read(statements);
  const periods = sections.flatMap((section) => section.periods);
  const left = Math.max(...periods.map(({ lines }) => measure(lines).width * BOLD)) + 2 * PADDING;
  const wide = Math.max(0, ...periods.flatMap(({ events }) => events).map((lines) => measure(lines).width)) + 2 * PADDING;
  const sectionWidth = Math.max(...sections.map(({ lines }) => measure(lines).width * BOLD));
  const width = Math.max(left + AXIS_PX + wide, sectionWidth) + 2 * MARGIN;
  const head = titleBlock(title || outerTitle, width);
  const axis = MARGIN + left + AXIS_PX / 2 + (head.width - width) / 2;
  const drawn = new TimelineDrawing({ axis, left, wide });
  let y = head.height + MARGIN;
  for (const [index, section] of sections.entries()) y = drawn.drawSection(section, sections.length > 1 ? index : null, y);
  const line = shape("line", { x1: axis, x2: axis, y1: drawn.top, y2: y - 2 * GAP, class: "axis" });
  return drawing(head.width, y + MARGIN, name, ...head.nodes, line, ...drawn.nodes);
}

class TimelineDrawing {
  nodes = [];
  top = null; // of the first period
  #numPeriods = 0;

  constructor({ axis, left, wide }) {
    Object.assign(this, { axis, left, wide });
  }

  /** Returns where the next section begins. */
  drawSection({ lines, periods }, index, start) {
    let y = start;
    if (lines.length > 0) {
      y += (lines.length * LINE_PX) / 2;
      this.nodes.push(label(lines, this.axis - AXIS_PX / 2 - this.left, y, { kind: "label group-title", anchor: "start" }));
      y += (lines.length * LINE_PX) / 2 + GAP;
    }
    for (const period of periods) {
      y = this.#drawPeriod(period, (index ?? this.#numPeriods) % NUM_TONES, y) + GAP;
      this.#numPeriods += 1;
    }
    return y + GAP;
  }

  #drawPeriod({ lines, events }, tone, top) {
    this.top ??= top;
    const height = measure(lines).height + PADDING;
    const middle = top + height / 2;
    const right = this.axis - AXIS_PX / 2;
    const parts = [
      shape("rect", { x: right - this.left, y: top, width: this.left, height, rx: 6, class: "box" }),
      label(lines, right - this.left / 2, middle, { kind: "label title" }),
    ];
    let y = top;
    for (const [index, event] of events.entries()) {
      const tall = measure(event).height + PADDING;
      const x = this.axis + AXIS_PX / 2;
      const lineY = index === 0 ? Math.min(middle, y + tall - PADDING) : y + tall / 2;
      parts.push(shape("line", { x1: this.axis, x2: x, y1: lineY, y2: lineY, class: "branch" }));
      parts.push(shape("rect", { x, y, width: this.wide, height: tall, rx: 6, class: "box" }), label(event, x + PADDING, y + tall / 2, { anchor: "start" }));
      y += tall + GAP;
    }
    parts.push(shape("line", { x1: right, x2: this.axis, y1: middle, y2: middle, class: "branch" }), shape("circle", { cx: this.axis, cy: middle, r: 5, class: "point" }));
    this.nodes.push(shape("g", { class: `toned tone-${tone}` }, ...parts));
    return Math.max(top + height, y - GAP);
  }
}

function read([first, ...rest]) {
  if (!/^timeline(?:\s+(?:LR|TD))?$/.test(first.text)) throw new Unreadable(first.line);
  const timeline = { title: "", sections: [] };
  let [numPeriods, numEvents] = [0, 0];
  for (const { text, line } of rest) {
    const title = /^title\s+(.*)$/.exec(text);
    const section = /^section\s+(.*)$/.exec(text);
    if (title !== null) timeline.title = title[1];
    else if (section !== null) timeline.sections.push({ lines: linesOf(section[1]), periods: [] });
    else {
      const [period, ...events] = text.split(/:(?=\s|$)|(?<=\s):/).map((part) => part.trim());
      if (timeline.sections.length === 0) timeline.sections.push({ lines: [], periods: [] });
      const { periods } = timeline.sections.at(-1);
      if (period !== "") periods.push({ lines: linesOf(period, MAX_PERIOD_LINE), events: [] });
      numPeriods += 1;
      numEvents += events.length;
      if (periods.length === 0) throw new Unreadable(line); // an event of no period
      periods.at(-1).events.push(...events.filter((event) => event !== "").map((event) => linesOf(event, MAX_EVENT_LINE)));
    }
    if (numPeriods > MAX_PERIODS || numEvents > MAX_EVENTS || timeline.sections.length > MAX_PERIODS) throw new TooLarge();
  }
  if (numPeriods === 0) throw new Unreadable(first.line);
  return { ...timeline, sections: timeline.sections.filter(({ periods }) => periods.length > 0) };
}
