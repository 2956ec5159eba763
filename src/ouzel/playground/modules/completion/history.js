// The texts before and after each run, so that a run can be undone, and shown again.

const MAX_TEXTS = 50;

export class History {
  #before = [];
  #undone = [];

  get canUndo() {
    return this.#before.length > 0;
  }

  get canRedo() {
    return this.#undone.length > 0;
  }

  /** Keeps the text as it is before a run. */
  keep(text) {
    this.#before = [...this.#before, text].slice(-MAX_TEXTS);
    this.#undone = [];
  }

  /** Returns the text before the last run. `text` is the one that is shown now. */
  undo(text) {
    this.#undone.push(text);
    return this.#before.pop();
  }

  redo(text) {
    this.#before.push(text);
    return this.#undone.pop();
  }
}
