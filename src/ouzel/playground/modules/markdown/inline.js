// The text of a paragraph, a heading or a cell becomes a row of items: text, elements, and marks that open and close
// elements around other items. The rules:
//
// - What opens and what closes an element are at most REACH characters apart. So of a text that is still being written only
//   the newest part can change its meaning, however long the text is.
// - `pendingAt` is where the first mark stands that what comes later might close. `settledEnd` finds a place before it
//   where the text can be cut: what stands before such a place means the same, whatever follows.
// - Emphasis is matched as CommonMark says: marks in a row of items, closers from left to right, each with the nearest
//   opener; but inside of a link before what is around it.

import { safeAddress } from "./addresses.js";
import { destinationAt, UNFINISHED } from "./destination.js";
import { characterOf, ENTITY } from "./entities.js";
import { formulaEnd, opensFormula } from "./formulas/marks.js";
import { isPunctuation, Marks } from "./marks.js";

const REACH = 2000;
const MAX_VAIN = 500; // destinations that are read in vain: each is as long as the reach
const PLAIN = /[^\\`*_~[\]!<&$:\n【]+/y;
const BACKTICKS = /`+/y;
const ANGLE_ADDRESS = /<([a-zA-Z][a-zA-Z\d+.-]{1,31}:[^\s<>]*)>/y;
const ANGLE_MAIL = /<([\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-zA-Z\d-]+(?:\.[a-zA-Z\d-]+)*)>/y;
const UNFINISHED_ANGLE = /<[^\s<>]*$/y;
const MARKER = /【\d{1,6}】/y; // of a source that the text cites
const UNFINISHED_MARKER = /【\d{0,6}$/y;
const NOTE = /\[\^([^\s[\]]{1,40})\]/y; // at the foot of the text
const UNFINISHED_NOTE = /\[\^[^\s[\]]{0,40}$/y;
const BARE_ADDRESS = /https?:\/\/[^\s<>"`*$\\[\]\u3000-\u303f\uff00-\uffef]+/iy;
const IDEOGRAPHS = 0x2e80; // from here on characters are words by themselves

/** `before` is the character in front of the text. Returns `{ items, openMarks, pendingAt }`. */
export function parseInline(source, before = "") {
  return new InlineParser(source, before).parse();
}

/** Returns the last place where a text that goes on can be cut for good; 0 where there is none. */
export function settledEnd(source, { items, pendingAt }) {
  let settled = 0;
  let depth = 0;
  for (const item of items) {
    if (item.at > pendingAt) break;
    if (depth === 0 && isBoundary(source, item.at)) settled = item.at;
    if (depth === 0 && item.isPlain) settled = Math.max(settled, lastBoundary(source, item, Math.min(item.end, pendingAt)));
    depth += (item.opens?.length ?? 0) - (item.closes?.length ?? 0);
  }
  return settled;
}

function lastBoundary(source, item, end) {
  for (let at = end; at > item.at; at -= 1) if (isBoundary(source, at)) return at;
  return 0;
}

/** A word begins there: nothing that begins with it looks back further than one character. */
function isBoundary(source, at) {
  if (at === 0 || at >= source.length || /\s/.test(source[at])) return false;
  const code = source.charCodeAt(at - 1);
  return /\s/.test(source[at - 1]) || (code >= IDEOGRAPHS && code < 0xd800);
}

class InlineParser {
  #items = [];
  #brackets = [];
  #marks;
  #at = 0;
  #pendingAt = Infinity;
  #numVain = 0;
  #noAddressBefore = 0; // no address begins before that place
  #backticks = null; // where runs of them begin, by length

  constructor(source, before) {
    this.source = source;
    this.before = before;
    this.#marks = new Marks(REACH);
  }

  parse() {
    while (this.#at < this.source.length) {
      const plain = this.#match(PLAIN);
      if (plain !== null) this.#plain(plain[0].length);
      else this.#special(this.source[this.#at]);
    }
    this.#marks.match(-1);
    const openMarks = this.#marks.open.filter((mark) => mark.canOpen);
    for (const { at } of [...openMarks, ...this.#brackets]) this.#wait(at);
    return { items: this.#items, openMarks, pendingAt: this.#pendingAt };
  }

  #special(character) {
    if (character === "\\") this.#backslash();
    else if (character === "`") this.#code();
    else if ("*_~".includes(character)) this.#run(character);
    else if (character === "[") this.#bracket(1);
    else if (character === "!" && this.source[this.#at + 1] === "[") this.#bracket(2);
    else if (character === "]") this.#closeBracket();
    else if (character === "<") this.#angle();
    else if (character === "&") this.#entity();
    else if (character === "$") this.#dollar();
    else if (character === ":") this.#colon();
    else if (character === "\n") this.#lineEnd();
    else if (character === "【") this.#marker();
    else this.#plain(1);
  }

  #match(pattern) {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.source);
  }

  /** Notes that what comes later may close what stands at that place. */
  #wait(at) {
    if (this.source.length - at <= REACH) this.#pendingAt = Math.min(this.#pendingAt, at);
  }

  #push(item, length) {
    this.#items.push({ at: this.#at, end: this.#at + length, ...item });
    this.#at += length;
  }

  #plain(length) {
    this.#push({ isPlain: true, text: this.source.slice(this.#at, this.#at + length) }, length);
  }

  #backslash() {
    const next = this.source[this.#at + 1];
    if (next === "\n") this.#push({ element: "br" }, 2);
    else if ((next === "(" || next === "[") && this.#maths(2, next === "(" ? "\\)" : "\\]", next === "[")) return;
    else if (next !== undefined && /[!-/:-@[-`{-~]/.test(next)) this.#push({ text: next }, 2);
    else this.#plain(1);
  }

  #code() {
    const [{ length }] = this.#match(BACKTICKS);
    const start = this.#at + length;
    const end = this.#backticksBehind(start, length);
    if (end === null || end - this.#at > REACH) {
      this.#wait(this.#at);
      this.#push({ text: "`".repeat(length), opensCode: true }, length);
      return;
    }
    const inside = this.source.slice(start, end).replaceAll("\n", " ");
    const isPadded = /^ .*[^ ].* $/.test(inside);
    this.#push({ element: "code", text: isPadded ? inside.slice(1, -1) : inside }, end + length - this.#at);
  }

  /** Returns where the next run of that many backticks begins; null where there is none. */
  #backticksBehind(start, length) {
    if (this.#backticks === null) {
      this.#backticks = new Map();
      for (const { 0: run, index } of [...this.source.matchAll(/`+/g)].reverse()) {
        if (!this.#backticks.has(run.length)) this.#backticks.set(run.length, []);
        this.#backticks.get(run.length).push(index);
      }
    }
    const places = this.#backticks.get(length) ?? [];
    while (places.length > 0 && places.at(-1) < start) places.pop();
    return places.at(-1) ?? null;
  }

  #run(character) {
    let length = 1;
    while (this.source[this.#at + length] === character) length += 1;
    const mark = { character, count: length, ...this.#flanks(character, length), opens: [], closes: [] };
    this.#push(mark, length);
    this.#marks.add(this.#items.at(-1));
  }

  /** Tells whether a run of marks can open and close, from what stands before and behind it. */
  #flanks(character, length) {
    const before = this.#characterBefore;
    const behind = this.source[this.#at + length] ?? "";
    const isBlank = (text) => text === "" || /\s/.test(text);
    const [blankBefore, blankBehind] = [isBlank(before), isBlank(behind)];
    const [markBefore, markBehind] = [isPunctuation(before), isPunctuation(behind)];
    const isLeft = !blankBehind && (!markBehind || blankBefore || markBefore);
    const isRight = !blankBefore && (!markBefore || blankBehind || markBehind);
    if (character !== "_") return { canOpen: isLeft, canClose: isRight };
    return { canOpen: isLeft && (!isRight || markBefore), canClose: isRight && (!isLeft || markBehind) };
  }

  #bracket(length) {
    const note = this.#match(NOTE);
    if (note !== null) return this.#push({ element: "note", text: note[0], label: note[1] }, note[0].length);
    if (this.#match(UNFINISHED_NOTE) !== null) this.#wait(this.#at);
    const bracket = { text: this.source.slice(this.#at, this.#at + length), isImage: length === 2, isActive: true };
    this.#push(bracket, length);
    this.#brackets.push(this.#items.at(-1));
  }

  #closeBracket() {
    const bracket = this.#brackets.pop();
    const isOpen = bracket?.isActive && this.#at - bracket.at <= REACH;
    if (isOpen && this.#at + 1 === this.source.length) this.#wait(bracket.at);
    const mayLead = isOpen && this.source[this.#at + 1] === "(" && this.#numVain < MAX_VAIN;
    const found = mayLead ? destinationAt(this.source, this.#at + 2) : null;
    if (mayLead && found === null) this.#numVain += 1;
    if (found === UNFINISHED) {
      this.#wait(bracket.at);
      bracket.unfinishedAt = this.#items.length;
    }
    const href = found === null || found === UNFINISHED ? null : safeAddress(found.address);
    if (href === null) this.#push({ text: "]" }, 1);
    else this.#closeLink(bracket, href, found);
  }

  #closeLink(bracket, href, { title, end }) {
    bracket.opens = [{ tag: "a", href, title, isImage: bracket.isImage }];
    this.#push({ closes: ["a"], count: 0 }, end - this.#at);
    this.#marks.match(bracket.at);
    this.#marks.forget(bracket.at);
    if (bracket.isImage) return;
    for (const outer of this.#brackets) if (!outer.isImage) outer.isActive = false; // there is no link in a link
  }

  #angle() {
    const address = this.#match(ANGLE_ADDRESS);
    const mail = address === null ? this.#match(ANGLE_MAIL) : null;
    const href = safeAddress(address?.[1] ?? `mailto:${mail?.[1]}`);
    const whole = address ?? mail;
    if (whole !== null && href !== null) return this.#push({ element: "address", href, text: whole[1] }, whole[0].length);
    if (this.#match(UNFINISHED_ANGLE) !== null) this.#wait(this.#at);
    this.#plain(1);
  }

  #entity() {
    const match = this.#match(ENTITY);
    const character = match && characterOf(match);
    if (character === null) this.#plain(1);
    else this.#push({ text: character }, match[0].length);
  }

  #dollar() {
    const isDouble = this.source[this.#at + 1] === "$";
    if (isDouble && !this.#maths(2, "$$", true)) this.#plain(2);
    else if (!isDouble && !(opensFormula(this.source, this.#at, this.#characterBefore) && this.#maths(1, "$", false))) this.#plain(1);
  }

  get #characterBefore() {
    return this.#at === 0 ? this.before : this.source[this.#at - 1];
  }

  #maths(length, end, isDisplayed) {
    const start = this.#at + length;
    const at = formulaEnd(this.source, start, end, this.#at + REACH);
    if (at === null) this.#wait(this.#at);
    if (at === null || at < 0) return false;
    this.#push({ element: "maths", text: this.source.slice(start, at).trim(), isDisplayed }, at + end.length - this.#at);
    return true;
  }

  /** An address that stands in the text as it is begins before its colon. */
  #colon() {
    const plain = this.#items.at(-1);
    const scheme = plain?.isPlain && plain.end === this.#at ? /https?$/i.exec(plain.text) : null;
    const start = this.#at - (scheme?.[0].length ?? 0);
    const before = start === 0 ? this.before : this.source[start - 1];
    BARE_ADDRESS.lastIndex = start;
    const mayBegin = scheme !== null && start >= this.#noAddressBefore && !/[a-zA-Z\d]/.test(before);
    const match = mayBegin ? BARE_ADDRESS.exec(this.source) : null;
    const text = match && withoutEnd(match[0]);
    const href = match && safeAddress(text);
    if (href === null) {
      if (match !== null) this.#noAddressBefore = start + match[0].length;
      return this.#plain(1);
    }
    plain.text = plain.text.slice(0, -scheme[0].length);
    plain.end = start;
    this.#at = start;
    this.#push({ element: "address", href, text }, text.length);
  }

  #marker() {
    const match = this.#match(MARKER);
    if (match !== null) return this.#push({ element: "marker", text: match[0] }, match[0].length);
    if (this.#match(UNFINISHED_MARKER) !== null) this.#wait(this.#at);
    this.#plain(1);
  }

  #lineEnd() {
    const last = this.#items.at(-1);
    const isHard = last?.isPlain && last.text.endsWith("  ");
    if (last?.isPlain) last.text = last.text.trimEnd();
    this.#push(isHard ? { element: "br" } : { text: "\n" }, 1);
  }
}

/** Punctuation behind an address is the sentence's, and so is a parenthesis that it does not open. */
function withoutEnd(address) {
  let numUnopened = address.split(")").length - address.split("(").length;
  for (let end = address.length; ; end -= 1) {
    const last = address[end - 1];
    const isUnopened = last === ")" && numUnopened > 0;
    if (!isUnopened && !/[?!.,:;_~'"|]/.test(last)) return address.slice(0, end);
    if (isUnopened) numUnopened -= 1;
  }
}
