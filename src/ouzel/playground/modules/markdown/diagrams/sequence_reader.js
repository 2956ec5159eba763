// The code of a sequence becomes actors and steps: messages, notes, and the beginnings and ends of frames.

import { TooLarge, Unreadable } from "./statements.js";

const MAX_ACTORS = 30;
const MAX_STEPS = 300;
const MAX_DEPTH = 8;
const IGNORED = /^(?:(?:de)?activate|destroy|links?|properties|details)\b/;
const ACTOR = /^(?:create\s+)?(participant|actor)\s+(.{1,200}?)(?:\s+as\s+(.{1,200}))?$/;
const NAME = "[^\\s:,;+<>-](?:[^:,;+<>-]|-(?![->x)])){0,80}?";
const MESSAGE = new RegExp(`^(${NAME})\\s*(<<-->>|<<->>|--?>>|--?>|--?x|--?\\))\\s*([+-]?)\\s*(${NAME})\\s*:\\s*(.*)$`, "u");
const NOTE = /^note\s+(left of|right of|over)\s+([^:,]{1,80})(?:,\s*([^:,]{1,80}))?\s*:\s*(.*)$/i;
const FRAME = /^(loop|alt|opt|par|critical|break|rect|box)\b\s*(.*)$/;
const DIVIDER = /^(else|and|option)\b\s*(.*)$/;

/** Returns `{ title, actors, steps, isNumbered }`; actors are a map by their names in the code. */
export function readSequence([first, ...rest]) {
  if (first.text !== "sequenceDiagram") throw new Unreadable(first.line);
  const sequence = { title: "", actors: new Map(), steps: [], isNumbered: false };
  const open = [];
  for (const { text, line } of rest) {
    if (!take(text.replace(/;$/, ""), sequence, open)) throw new Unreadable(line);
    if (sequence.actors.size > MAX_ACTORS || sequence.steps.length > MAX_STEPS || open.length > MAX_DEPTH) throw new TooLarge();
  }
  if (sequence.actors.size === 0) throw new Unreadable(first.line);
  while (open.length > 0) end(sequence, open);
  return sequence;
}

/** Tells whether the statement could be read. */
function take(text, sequence, open) {
  if (IGNORED.test(text)) return true;
  if (/^autonumber\b/.test(text)) return (sequence.isNumbered = true);
  if (text === "end") return open.length > 0 && end(sequence, open);
  const title = /^title:?\s+(.*)$/.exec(text);
  if (title !== null) sequence.title = title[1];
  return title !== null || takeActor(text, sequence) || takeMessage(text, sequence) || takeNote(text, sequence) || takeFrame(text, sequence, open);
}

function takeActor(text, { actors }) {
  const found = ACTOR.exec(text);
  if (found === null) return false;
  const [, kind, id, name] = found;
  actors.set(id, { id, name: name ?? id, isPerson: kind === "actor" });
  return true;
}

function takeMessage(text, { actors, steps }) {
  const found = MESSAGE.exec(text);
  if (found === null) return false;
  const [, from, arrow, , to, words] = found.map((each) => each.trim());
  for (const id of [from, to]) if (!actors.has(id)) actors.set(id, { id, name: id, isPerson: false });
  steps.push({ kind: "message", from, to, arrow, text: words });
  return true;
}

function takeNote(text, { actors, steps }) {
  const found = NOTE.exec(text);
  if (found === null) return false;
  const [, place, from, to, words] = found.map((each) => each?.trim());
  for (const id of [from, to ?? from]) if (!actors.has(id)) actors.set(id, { id, name: id, isPerson: false });
  steps.push({ kind: "note", place: place.toLowerCase(), from, to: to ?? from, text: words });
  return true;
}

function takeFrame(text, { steps }, open) {
  const frame = FRAME.exec(text);
  const divider = DIVIDER.exec(text);
  if (frame !== null) {
    const isDrawn = frame[1] !== "rect" && frame[1] !== "box"; // these are only coloured
    open.push(isDrawn);
    if (isDrawn) steps.push({ kind: "frame", name: frame[1], text: frame[2] });
    return true;
  }
  if (divider === null || open.length === 0) return false;
  steps.push({ kind: "divider", text: divider[2] });
  return true;
}

function end({ steps }, open) {
  if (open.pop()) steps.push({ kind: "end" });
  return true;
}
