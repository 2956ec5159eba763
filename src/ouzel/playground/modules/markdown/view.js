// Markdown that is still being written becomes elements, block by block. No text is ever read as HTML, and nothing is
// fetched: pictures are links.

import { ChildrenView } from "./block_views.js";
import { BlockParser } from "./block_parser.js";
import { listenToCopies } from "./formulas/copying.js";
import { Notes } from "./notes.js";

const MAX_FRAME_MS = 8; // for lines of a text; what is left waits for the next frame

export class MarkdownView {
  #parser = new BlockParser();
  #view;
  #pieces = []; // of the text, as they came
  #waiting = ""; // text whose lines have not been taken
  #frame = null;
  #isFinished = false;
  #notes;
  #hasNotes = false;

  /** `onDraw` is called whenever elements of the text have changed. */
  constructor(container, onDraw = () => {}) {
    this.onDraw = onDraw;
    container.classList.add("markdown");
    listenToCopies();
    this.#view = new ChildrenView(container);
    this.#notes = new Notes(container);
  }

  get text() {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join("")];
    return this.#pieces[0] ?? "";
  }

  /** Takes what comes next of the text; it is shown with the next frame. */
  append(text) {
    if (this.#isFinished) throw new Error("the text is finished: nothing can be appended");
    this.#pieces.push(text);
    this.#waiting += text;
    this.#frame ??= requestAnimationFrame(() => this.draw());
  }

  /** Shows what has come until now, or as much of it as a frame has time for. */
  draw() {
    this.#frame = null;
    if (this.#isFinished) return;
    const isBehind = this.#takeLines(performance.now() + MAX_FRAME_MS);
    const fork = this.#parser.fork();
    if (!isBehind) fork.takeBeginning(withoutReturn(this.#waiting));
    this.#show(fork.document);
    if (isBehind) this.#frame = requestAnimationFrame(() => this.draw());
  }

  /** Shows all of the text at once; no more of it comes. */
  finish() {
    if (this.#isFinished) return;
    this.#isFinished = true;
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#takeLines(Infinity);
    if (this.#waiting !== "") this.#take(withoutReturn(this.#waiting));
    this.#waiting = "";
    this.#show(this.#parser.document);
  }

  #show(document) {
    this.#view.update(document);
    if (this.#hasNotes) this.#notes.link();
    this.onDraw();
  }

  #take(line) {
    this.#hasNotes ||= line.includes("[^");
    this.#parser.take(line);
  }

  /** Tells whether whole lines are left at that time. */
  #takeLines(deadline) {
    let start = 0;
    let isBehind = false;
    for (let end; (end = this.#waiting.indexOf("\n", start)) >= 0; start = end + 1) {
      isBehind = performance.now() > deadline;
      if (isBehind) break;
      this.#take(withoutReturn(this.#waiting.slice(start, end)));
    }
    this.#waiting = this.#waiting.slice(start);
    return isBehind;
  }
}

/** Shows a text that is whole. */
export function renderMarkdown(text, container) {
  const view = new MarkdownView(container);
  view.append(text);
  view.finish();
}

function withoutReturn(line) {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
