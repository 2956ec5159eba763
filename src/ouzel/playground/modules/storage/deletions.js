// A deleted conversation can be taken back for a while. Until then its record has a mark, which hides it in all tabs; the
// server's copy and files are deleted when the time is over, or the page is left.

export const UNDO_MS = 12_000;

export class Deletions {
  #timers = new Map(); // by the keys of conversations that can be taken back, the newest last

  /** `onTrouble` gets what could not be done, as text. */
  constructor(library, { onTrouble }) {
    Object.assign(this, { library, onTrouble });
    addEventListener("pagehide", () => this.#leave());
  }

  /** Ends what a page before this one did not, as where the browser was closed at once. */
  resume() {
    for (const { key, deletedAt } of this.library.records.all) {
      if (deletedAt === undefined) continue;
      const left = deletedAt + UNDO_MS - Date.now(); // beyond the limits where somebody has set the clock
      setTimeout(() => this.#endLeft(key), Math.min(Math.max(left, 0), UNDO_MS));
    }
  }

  async begin(key) {
    await this.library.setDeleted(key, Date.now());
    this.#timers.set(key, setTimeout(() => this.#end(key), UNDO_MS));
  }

  has(key) {
    return this.#timers.has(key);
  }

  /** Takes a deletion back, or the newest one; returns the key of the conversation, or null where there is none. */
  async undo(key = [...this.#timers.keys()].at(-1)) {
    if (!this.#timers.has(key)) return null;
    this.#forget(key);
    await this.library.setDeleted(key, null);
    return key;
  }

  #end(key) {
    this.#forget(key);
    return this.library.remove(key).catch((error) => this.#fail(key, error));
  }

  /** Another tab may have taken it back, or ended it. */
  async #endLeft(key) {
    const record = await this.library.records.newest(key);
    if (record?.deletedAt !== undefined) await this.#end(key);
  }

  /** What the server refuses to delete is in the list again. */
  async #fail(key, error) {
    await this.library.setDeleted(key, null);
    this.onTrouble(error.message);
  }

  #leave() {
    for (const key of [...this.#timers.keys()]) {
      this.#forget(key);
      this.library.removeUnwatched(key);
    }
  }

  #forget(key) {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }
}
