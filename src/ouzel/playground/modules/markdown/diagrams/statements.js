// What the readers of diagrams share: the faults of a code.

/** A line of the code cannot be read. */
export class Unreadable extends Error {
  constructor(line) {
    super(`line ${line}`);
    this.line = line;
  }
}

/** The diagram has more parts than are drawn. */
export class TooLarge extends Error {}
