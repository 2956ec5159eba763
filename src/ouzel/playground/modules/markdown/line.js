// One line of Markdown while its blocks are found: what of it has not been read, and in which column that begins.

const TAB_WIDTH = 4;

export class Line {
  constructor(text) {
    this.rest = text;
    this.column = 0;
  }

  get isBlank() {
    return !/\S/.test(this.rest);
  }

  /** Returns how many columns are blank before the next character. */
  get indent() {
    let column = this.column;
    for (const character of this.rest) {
      if (character === " ") column += 1;
      else if (character === "\t") column += TAB_WIDTH - (column % TAB_WIDTH);
      else break;
    }
    return column - this.column;
  }

  /** Leaves out that many blank columns, or as many as there are; what is left of a tab becomes spaces. */
  skip(numColumns) {
    const target = this.column + numColumns;
    let at = 0;
    while (this.column < target && (this.rest[at] === " " || this.rest[at] === "\t")) {
      this.column += this.rest[at] === " " ? 1 : TAB_WIDTH - (this.column % TAB_WIDTH);
      at += 1;
    }
    const numSpaces = Math.max(this.column - target, 0);
    this.column -= numSpaces;
    this.rest = " ".repeat(numSpaces) + this.rest.slice(at);
  }

  skipIndent() {
    this.skip(this.indent);
  }

  /** Leaves out characters that are no tabs. */
  drop(length) {
    this.rest = this.rest.slice(length);
    this.column += length;
  }
}
