// Colours code line by line: what a line's colours depend on beside itself is one state, whatever the number of lines.

import { languageOf } from "./languages.js";

const MAX_LINE = 1000; // characters; what is longer was not written by hand, and is shown plain

export class Highlighter {
  /** A language that is not known has no colours. */
  constructor(name) {
    this.language = languageOf(name);
  }

  /**
   * Returns the tokens of a line, each with a kind ("" where it is plain) and a text, and the state behind the line. The
   * state is the span that a line ended in, as a comment of several lines; null where it ended in none.
   */
  read(line, state) {
    if (this.language === null || line.length > MAX_LINE) return { tokens: [{ kind: "", text: line }], state };
    const reader = new LineReader(this.language, line, state);
    return { tokens: reader.read(), state: reader.span };
  }
}

class LineReader {
  #tokens = [];

  constructor(language, line, span) {
    this.language = language;
    this.line = line;
    this.span = span;
    this.at = 0;
  }

  read() {
    while (this.at < this.line.length) {
      if (this.span !== null) this.#readSpan();
      else this.#readToken();
    }
    return this.#tokens;
  }

  /** Reads to the end of the span, or of the line. */
  #readSpan() {
    const { kind, end } = this.span;
    end.lastIndex = this.at;
    const match = end.exec(this.line);
    const stop = match === null ? this.line.length : match.index + match[0].length;
    if (match !== null) this.span = null;
    this.#add(kind, stop);
  }

  #readToken() {
    const { pattern, rules } = this.language;
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.line);
    if (match === null) return this.#add("", this.line.length);
    this.#add("", match.index);
    const rule = rules[match.slice(1).findIndex((group) => group !== undefined)];
    this.#add(kindOf(rule, match[0], this.language), match.index + match[0].length);
    if (rule.end) this.span = rule;
  }

  #add(kind, stop) {
    if (stop <= this.at) return;
    const text = this.line.slice(this.at, stop);
    this.at = stop;
    const last = this.#tokens.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.#tokens.push({ kind, text });
  }
}

function kindOf(rule, text, { words, ignoresCase }) {
  if (rule.kind !== "word") return rule.kind;
  return words.get(ignoresCase ? text.toLowerCase() : text) ?? "";
}
