// What follows the text of a link, in parentheses: its address, and a title in quotes.

import { unescaped } from "./entities.js";

const MAX_LENGTH = 2000;
const BLANK = /[ \t\n]/;
const TITLE_ENDS = { '"': '"', "'": "'", "(": ")" };

/** The text ended before the parentheses did: what follows may close them. */
export const UNFINISHED = Symbol("unfinished");

/** Reads from behind an opening parenthesis; returns `{ address, title, end }`, null where that is none, or UNFINISHED. */
export function destinationAt(source, start) {
  const from = skipBlank(source, start);
  const address = source[from] === "<" ? bracketed(source, from) : bare(source, from);
  if (address === null || address === UNFINISHED) return address;
  const behind = skipBlank(source, address.end);
  const quote = behind > address.end ? TITLE_ENDS[source[behind]] : undefined;
  if (quote === undefined) return closed(source, behind, address.text, "");
  const end = endOf(source, behind + 1, quote);
  if (typeof end !== "number") return end;
  return closed(source, skipBlank(source, end + 1), address.text, unescaped(source.slice(behind + 1, end)));
}

function closed(source, at, address, title) {
  if (at >= source.length) return UNFINISHED;
  return source[at] === ")" ? { address: unescaped(address), title, end: at + 1 } : null;
}

function bracketed(source, from) {
  const end = endOf(source, from + 1, ">");
  if (typeof end !== "number") return end;
  const text = source.slice(from + 1, end);
  return /[<\n]/.test(text) ? null : { text, end: end + 1 };
}

/** An address without brackets goes on to a blank or to the parenthesis that closes it. */
function bare(source, from) {
  let depth = 0;
  for (let at = from; at < source.length; at += 1) {
    const character = source[at];
    if (at - from > MAX_LENGTH) return null;
    if (character === "\\") at += 1;
    else if (character === "(") depth += 1;
    else if (character === ")" && depth > 0) depth -= 1;
    else if (character === ")" || BLANK.test(character)) return depth > 0 ? null : { text: source.slice(from, at), end: at };
  }
  return UNFINISHED;
}

function endOf(source, from, end) {
  for (let at = from; at < source.length; at += 1) {
    if (at - from > MAX_LENGTH) return null;
    if (source[at] === "\\") at += 1;
    else if (source[at] === end) return at;
  }
  return UNFINISHED;
}

function skipBlank(source, from) {
  let at = from;
  while (at < source.length && BLANK.test(source[at])) at += 1;
  return at;
}
