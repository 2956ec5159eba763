// Lines of Markdown become a tree of blocks. The rules:
//
// - A whole line is taken once. It changes the blocks on the path from the document to the newest block, which are open,
//   and no others; so a block that is closed stays as it is.
// - The line that is still being written is taken by a fork, which has copies of the open blocks, and is thrown away. A fork
//   gives the same number to the same new block each time, so that whoever draws blocks knows them again.
// - A line first goes on with open containers (quotes, items of lists); then what is left of it may begin blocks; what is
//   left then is text.
//
// Links to definitions elsewhere in the text are not known, as these may come after what refers to them.

import { Block } from "./block.js";
import {
  alignmentsAt,
  cellsOf,
  closesFence,
  fenceAt,
  headingAt,
  isRule,
  markerAt,
  mathsAt,
  noteAt,
  openings,
  underlineLevel,
} from "./block_starts.js";
import { Line } from "./line.js";

const MAX_DEPTH = 48; // of open blocks: each may be an element in an element
const RAW_KINDS = ["code", "maths"];
const RAW_INDENT = 4; // what is indented that far is code
// A line of this form may become one of several things when more of it is known.
const UNDECIDED = /^(?:[-+*_=#~`|:$\\! \t]*|(?:[-+*]|\d{1,9}[.)]?)[ \t]*(?:\[[ xX]?\]?[ \t]*)?|\[\^[^\s[\]]{0,40}\]?:?[ \t]*)$/;
const UNDECIDED_END = /^(?:`+|~+|\$+|\\\]?)[ \t]*$/;

export class BlockParser {
  #open = [new Block("document", 0)];
  #numBlocks = 1;
  #isAfterBlank = false;
  #isFork = false;

  get document() {
    return this.#open[0];
  }

  /** Returns a parser that has what this one has taken, and leaves it as it is. */
  fork() {
    const fork = new BlockParser();
    fork.#open = this.#open.map((block) => block.copy());
    fork.#open.forEach((block, depth) => {
      if (depth > 0) fork.#open[depth - 1].children.splice(-1, 1, block);
    });
    fork.#numBlocks = this.#numBlocks;
    fork.#isAfterBlank = this.#isAfterBlank;
    fork.#isFork = true;
    return fork;
  }

  /** Takes the beginning of a line, unless too little of it is known to say what it is. */
  takeBeginning(text) {
    const rest = text.replace(/^[\s>]+/, "");
    const undecided = RAW_KINDS.includes(this.#tip.kind) ? UNDECIDED_END : UNDECIDED;
    if (rest !== "" && !undecided.test(rest)) this.take(text);
  }

  /** Takes a whole line, without its end. */
  take(text) {
    const line = new Line(text);
    const numContinued = this.#continueOpen(line);
    const isRaw = numContinued === this.#open.length && RAW_KINDS.includes(this.#tip.kind);
    if (isRaw) this.#takeRaw(line);
    else this.#takeText(line, numContinued);
  }

  get #tip() {
    return this.#open.at(-1);
  }

  /** Returns how many of the open blocks the line goes on with, and reads what it says for each. */
  #continueOpen(line) {
    const stop = this.#open.findIndex((block) => !continues(block, line));
    return stop < 0 ? this.#open.length : stop;
  }

  #takeRaw(line) {
    const block = this.#tip;
    this.#isAfterBlank = block.fence === null && line.isBlank;
    if (block.kind === "maths") this.#takeMaths(line);
    else if (block.fence === null) takeIndented(block, line);
    else if (line.indent < RAW_INDENT && closesFence(line.rest, block.fence)) this.#open.pop();
    else {
      line.skip(block.indent);
      block.lines.push(line.rest);
    }
  }

  #takeMaths(line) {
    const block = this.#tip;
    if (block.environment) block.numOpen += openings(line.rest, block.environment);
    const at = block.numOpen > 0 ? -1 : line.rest.lastIndexOf(block.end);
    block.isClosed = at >= 0;
    if (line.isBlank || at >= 0) this.#open.pop();
    if (line.isBlank) return;
    const length = at + (block.environment ? block.end.length : 0);
    const last = at < 0 ? line.rest : line.rest.slice(0, length);
    if (last.trim() !== "") block.lines.push(last);
    const rest = at < 0 ? "" : line.rest.slice(at + block.end.length).trim();
    if (rest !== "") this.#add("paragraph", { text: rest });
  }

  #takeText(line, numContinued) {
    const { isBlank } = line;
    const isWhole = numContinued === this.#open.length;
    const isAfterText = this.#tip.kind === "paragraph"; // which goes on even where a line lacks the marks around it
    if (isAfterText && isWhole && this.#endsParagraph(line)) return;
    let begun = this.#begin(line, { isAfterText, isInText: isAfterText && isWhole });
    if (begun === null && isAfterText && !isBlank) {
      this.#tip.text += `\n${line.rest}`;
      this.#isAfterBlank = false;
      return;
    }
    this.#open.length = numContinued;
    const isRow = begun === null && this.#tip.kind === "table";
    while (begun !== null) {
      this.#add(begun.kind, begun.fields);
      begun = this.#tip.holds("paragraph") ? this.#begin(line, {}) : null;
    }
    if (isRow) this.#tip.lines.push(line.rest);
    else if (!line.isBlank) this.#add("paragraph", this.#withTask(line.rest));
    this.#isAfterBlank = isBlank;
    this.#closeWhole();
  }

  /** Takes a line that makes something else of the paragraph above it: a heading, or the head of a table. */
  #endsParagraph(line) {
    if (line.indent >= RAW_INDENT) return false;
    const { text } = this.#tip;
    const rest = line.rest.trimStart();
    const level = underlineLevel(rest);
    const head = text.slice(text.lastIndexOf("\n") + 1);
    const alignments = alignmentsAt(rest);
    if (level === 0 && (alignments === null || cellsOf(head).length !== alignments.length)) return false;
    const above = level > 0 ? "" : text.slice(0, -head.length - 1);
    if (above === "") this.#remove();
    else this.#tip.text = above;
    if (level > 0) this.#add("heading", { level, text });
    else this.#add("table", { alignments, lines: [head] });
    this.#isAfterBlank = false;
    this.#closeWhole();
    return true;
  }

  /** Reads what begins a block off the line, and returns that block's kind and fields; null where none begins. */
  #begin(line, { isAfterText = false, isInText = false }) {
    const { indent } = line;
    if (line.isBlank) return null;
    if (indent >= RAW_INDENT && !isAfterText) {
      line.skip(RAW_INDENT);
      const lines = [line.rest];
      line.rest = "";
      return { kind: "code", fields: { fence: null, language: "", lines, numBlank: 0 } };
    }
    line.skipIndent();
    if (indent >= RAW_INDENT) return null;
    return this.#beginLeaf(line, indent) ?? this.#beginContainer(line, indent, isInText);
  }

  #beginLeaf(line, indent) {
    const heading = headingAt(line.rest);
    const fence = fenceAt(line.rest);
    const maths = mathsAt(line.rest);
    let leaf = null;
    if (heading !== null) leaf = { kind: "heading", fields: heading };
    else if (fence !== null) leaf = { kind: "code", fields: { ...fence, indent, lines: [] } };
    else if (maths !== null) {
      const { line: first, ...fields } = maths;
      leaf = { kind: "maths", fields: { ...fields, isClosed: maths.isWhole, lines: first.trim() === "" ? [] : [first] } };
    } else if (isRule(line.rest)) leaf = { kind: "rule", fields: {} };
    if (leaf !== null) line.rest = "";
    return leaf;
  }

  #beginContainer(line, indent, isInText) {
    if (this.#open.length >= MAX_DEPTH) return null;
    if (line.rest[0] === ">") {
      readQuoteMark(line);
      return { kind: "quote", fields: {} };
    }
    const note = noteAt(line.rest);
    if (note !== null) {
      line.drop(note.length);
      return { kind: "note", fields: { label: note.label, indent: RAW_INDENT } };
    }
    const found = markerAt(line.rest);
    if (found === null) return null;
    const { marker, type, start } = found;
    const isEmpty = line.rest.trim() === marker;
    if (isInText && (isEmpty || (start !== null && start !== 1))) return null; // a line of text may begin with a year
    line.drop(marker.length);
    const numBlank = line.indent;
    const padding = isEmpty || numBlank > RAW_INDENT ? 1 : numBlank;
    line.skip(padding);
    return { kind: "item", fields: { type, start, indent: indent + marker.length + padding, isDone: null } };
  }

  /** Opens a block, below the newest open one that may have it as a child. */
  #add(kind, fields) {
    if (kind === "item" && !(this.#tip.kind === "list" && this.#tip.type === fields.type)) {
      this.#add("list", { type: fields.type, start: fields.start, isLoose: false });
      this.#isAfterBlank = false;
    }
    while (!this.#tip.holds(kind)) this.#open.pop();
    this.#noteLooseness();
    const block = new Block(kind, this.#numBlocks, fields);
    block.isTentative = this.#isFork;
    this.#numBlocks += 1;
    this.#tip.children.push(block);
    this.#open.push(block);
  }

  /** A blank line between items, or between the blocks of one, makes the list a loose one. */
  #noteLooseness() {
    if (!this.#isAfterBlank || this.#tip.children.length === 0) return;
    const list = this.#tip.kind === "item" ? this.#open.at(-2) : this.#tip;
    if (list.kind === "list") list.isLoose = true;
  }

  #remove() {
    this.#open.pop();
    this.#tip.children.pop();
  }

  /** Closes what never has a second line. */
  #closeWhole() {
    const { kind, isWhole } = this.#tip;
    if (kind === "heading" || kind === "rule" || (kind === "maths" && isWhole)) this.#open.pop();
  }

  /** Returns the fields of a paragraph; a box before the first one of an item becomes the item's. */
  #withTask(text) {
    const item = this.#tip;
    const match = item.kind === "item" && item.children.length === 0 ? /^\[([ xX])\][ \t]+(?=\S)/.exec(text) : null;
    if (match === null) return { text };
    item.isDone = match[1] !== " ";
    return { text: text.slice(match[0].length) };
  }
}

/** Tells whether the line goes on with an open block, and reads the block's mark off it. */
function continues(block, line) {
  if (block.kind === "quote") return line.indent < RAW_INDENT && readQuoteMark(line);
  if (block.kind === "item" || block.kind === "note") return continuesItem(block, line);
  if (block.kind === "code" && block.fence === null) return line.isBlank || line.indent >= RAW_INDENT;
  return !line.isBlank || !["paragraph", "table"].includes(block.kind);
}

function continuesItem(item, line) {
  const isInside = line.isBlank ? item.children.length > 0 : line.indent >= item.indent;
  if (isInside) line.skip(item.indent);
  return isInside;
}

function readQuoteMark(line) {
  if (line.rest.trimStart()[0] !== ">") return false;
  line.skipIndent();
  line.drop(1);
  line.skip(1);
  return true;
}

/** Blank lines are a part of indented code where more of it follows. */
function takeIndented(block, line) {
  if (line.isBlank) {
    block.numBlank += 1;
    return;
  }
  line.skip(RAW_INDENT);
  block.lines.push(...Array(block.numBlank).fill(""), line.rest);
  block.numBlank = 0;
}
