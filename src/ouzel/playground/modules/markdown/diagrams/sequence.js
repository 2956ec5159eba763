// Sequences: actors beside each other, each with a line down, and messages between them from above to below.

import { readSequence } from "./sequence_reader.js";
import { arrowHead, drawing, label, LINE_PX, linesOf, measure, shape } from "./svg.js";

const MARGIN = 14;
const MIN_DISTANCE = 120; // of two actors' lines
const STEP_PX = 16;
const SELF_PX = 36;
const FRAME_INSET = 8;

export function draw(statements, { name, title }) {
  const sequence = readSequence(statements);
  return new SequenceDrawing({ ...sequence, title: sequence.title || title }).draw(name);
}

class SequenceDrawing {
  #back = [];
  #nodes = [];
  #frames = []; // that are open
  #numMessages = 0;
  #right = 0;
  #left = 0;

  constructor({ title, actors, steps, isNumbered }) {
    this.title = title === "" ? [] : linesOf(title);
    this.steps = steps.map((step) => ({ ...step, lines: step.text ? linesOf(step.text) : [] }));
    this.isNumbered = isNumbered;
    this.actors = [...actors.values()].map((actor, index) => {
      const lines = linesOf(actor.name);
      const size = measure(lines);
      return { ...actor, index, lines, width: size.width + 28, height: size.height + 16 };
    });
    this.byId = new Map(this.actors.map((actor) => [actor.id, actor]));
    this.#placeActors();
  }

  draw(name) {
    const head = MARGIN + this.title.length * LINE_PX + (this.title.length > 0 ? 10 : 0);
    const height = Math.max(...this.actors.map((actor) => actor.height));
    this.y = head + height;
    for (const step of this.steps) this.#draw(step);
    const bottom = this.y + STEP_PX;
    const lines = this.actors.map(({ x }) => shape("line", { x1: x, x2: x, y1: head + height, y2: bottom, class: "lifeline" }));
    const tops = this.actors.flatMap((actor) => actorBox(actor, head + height / 2, height));
    const ends = this.actors.flatMap((actor) => actorBox(actor, bottom + height / 2, height));
    const right = Math.max(this.#right, this.actors.at(-1).x + this.actors.at(-1).width / 2, measure(this.title).width);
    const left = Math.min(this.#left, 0);
    if (this.title.length > 0) tops.push(label(this.title, (left + right) / 2, MARGIN + (this.title.length * LINE_PX) / 2 - 4, { kind: "label title" }));
    const moved = shape("g", { transform: `translate(${MARGIN - left} 0)` }, ...this.#back, ...lines, ...this.#nodes, ...tops, ...ends);
    return drawing(right - left + 2 * MARGIN, bottom + height + MARGIN, name, moved);
  }

  /** Neighbours stand as far apart as the texts between them need; a text across several actors is shared by the distances. */
  #placeActors() {
    const distances = this.actors.slice(1).map((actor, index) => Math.max(MIN_DISTANCE, (actor.width + this.actors[index].width) / 2 + 24));
    for (const { kind, from, to, lines, place } of this.steps) {
      if (kind !== "message" && kind !== "note") continue;
      const [first, last] = [this.byId.get(from).index, this.byId.get(to).index].sort((one, other) => one - other);
      const width = measure(lines).width + 40;
      if (first !== last) for (let index = first; index < last; index += 1) distances[index] = Math.max(distances[index], width / (last - first));
      else if (kind === "message" && first < distances.length) distances[first] = Math.max(distances[first], width + 20);
      else if (place === "left of" && first > 0) distances[first - 1] = Math.max(distances[first - 1], width + 20);
      else if (place === "right of" && first < distances.length) distances[first] = Math.max(distances[first], width + 20);
    }
    this.actors.reduce((x, actor, index) => (actor.x = x + (index === 0 ? actor.width / 2 : distances[index - 1])), 0);
  }

  #draw(step) {
    if (step.kind === "message") this.#drawMessage(step);
    else if (step.kind === "note") this.#drawNote(step);
    else if (step.kind === "frame") this.#openFrame(step);
    else if (step.kind === "divider") this.#drawDivider(step);
    else this.#closeFrame();
  }

  #drawMessage({ from, to, arrow, lines }) {
    this.#numMessages += 1;
    const text = this.isNumbered ? [`${this.#numMessages}. ${lines[0] ?? ""}`.trim(), ...lines.slice(1)] : lines;
    const [start, end] = [this.byId.get(from).x, this.byId.get(to).x];
    const kind = arrow.includes("--") ? "edge dotted" : "edge";
    const hasHead = arrow.endsWith(">>") || arrow.endsWith(")") || arrow.endsWith("x");
    const sign = arrow.endsWith("x") ? "x" : ">";
    this.y += STEP_PX + text.length * LINE_PX;
    const labelY = this.y - (text.length * LINE_PX) / 2 - 4;
    if (start === end) return this.#drawSelf(start, text, labelY, kind, hasHead && sign);
    const direction = Math.sign(end - start);
    this.#nodes.push(labelBack(text, (start + end) / 2, labelY), label(text, (start + end) / 2, labelY), shape("line", { x1: start, x2: end, y1: this.y, y2: this.y, class: kind }));
    if (hasHead) this.#nodes.push(arrowHead(end, this.y, direction, 0, sign));
    if (arrow.startsWith("<<")) this.#nodes.push(arrowHead(start, this.y, -direction, 0));
    this.#widen(Math.min(start, end), Math.max(start, end));
  }

  #drawSelf(x, lines, labelY, kind, head) {
    const path = `M${x} ${this.y}h${SELF_PX}v20h${-SELF_PX}`;
    this.#nodes.push(label(lines, x + 8, labelY, { anchor: "start" }), shape("path", { d: path, class: kind }));
    this.y += 20;
    if (head) this.#nodes.push(arrowHead(x, this.y, -1, 0, head));
    this.#widen(x, x + Math.max(SELF_PX, measure(lines).width + 8));
  }

  #drawNote({ place, from, to, lines }) {
    const size = measure(lines);
    const [start, end] = [this.byId.get(from).x, this.byId.get(to).x];
    const width = Math.max(size.width + 20, place === "over" ? Math.abs(end - start) + 40 : 0);
    const height = size.height + 12;
    const middle = { "left of": start - width / 2 - 10, "right of": start + width / 2 + 10, over: (start + end) / 2 }[place];
    this.y += STEP_PX;
    this.#nodes.push(shape("rect", { x: middle - width / 2, y: this.y, width, height, class: "note" }), label(lines, middle, this.y + height / 2));
    this.y += height;
    this.#widen(middle - width / 2, middle + width / 2);
  }

  #openFrame({ name, lines }) {
    this.y += STEP_PX;
    const frame = { top: this.y, left: Infinity, right: -Infinity, name, dividers: [] };
    this.#frames.push(frame);
    this.#sayInFrame(lines, measure([name]).width + 26);
  }

  #drawDivider({ lines }) {
    if (this.#frames.length === 0) return;
    this.y += STEP_PX;
    this.#frames.at(-1).dividers.push(this.y);
    this.#sayInFrame(lines, 10);
  }

  /** A frame's words stand at its left, which is known when it closes. */
  #sayInFrame(lines, indent) {
    const y = this.y + 12;
    (this.#frames.at(-1).words ??= []).push({ lines: lines.length > 0 ? [`[${lines.join(" ")}]`] : [], y, indent });
    this.y += LINE_PX + 4;
  }

  #closeFrame() {
    const { top, left: first, right: last, name, dividers, words } = this.#frames.pop();
    this.y += STEP_PX / 2;
    const depth = this.#frames.length + 1;
    const isEmpty = first > last;
    const left = (isEmpty ? 0 : first) - FRAME_INSET * 2 + depth;
    const needed = Math.max(...words.map(({ lines, indent }) => measure(lines).width + indent + 10));
    const right = Math.max((isEmpty ? this.actors.at(-1).x : last) + FRAME_INSET * 2 - depth, left + needed);
    this.#back.push(shape("rect", { x: left, y: top, width: right - left, height: this.y - top, class: "frame" }));
    this.#nodes.push(shape("rect", { x: left, y: top, width: measure([name]).width + 16, height: 22, class: "frame-name" }), label([name], left + 8, top + 11, { anchor: "start" }));
    for (const y of dividers) this.#nodes.push(shape("line", { x1: left, x2: right, y1: y, y2: y, class: "divider" }));
    for (const { lines, y, indent } of words) this.#nodes.push(label(lines, left + indent, y, { kind: "label frame-text", anchor: "start" }));
    this.#widen(left, right);
  }

  #widen(left, right) {
    this.#left = Math.min(this.#left, left);
    this.#right = Math.max(this.#right, right);
    for (const frame of this.#frames) {
      frame.left = Math.min(frame.left, left);
      frame.right = Math.max(frame.right, right);
    }
  }
}

/** Lines of actors do not cross the words of a message. */
function labelBack(lines, x, y) {
  const { width, height } = measure(lines);
  return shape("rect", { x: x - width / 2 - 2, y: y - height / 2 + 1, width: width + 4, height: Math.max(height - 2, 0), class: "label-back" });
}

function actorBox({ x, width, lines, isPerson }, y, height) {
  const box = shape("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: isPerson ? height / 2 : 3, class: "box" });
  return [box, label(lines, x, y)];
}
