// A text that the browser keeps, in one of its two storages; where it may keep none, it lasts as long as the page.

export class KeptText {
  #ofPage = null;

  /** `storage` is "localStorage" or "sessionStorage": to touch one is an error where a person forbids it. */
  constructor(storage, name) {
    Object.assign(this, { storage, name });
  }

  get value() {
    if (this.#ofPage !== null) return this.#ofPage;
    try {
      return globalThis[this.storage].getItem(this.name) ?? "";
    } catch {
      return "";
    }
  }

  set value(text) {
    this.keep(text);
  }

  /** Sets the value. Returns false where it lasts as long as the page only: the storage is forbidden, or full. */
  keep(text) {
    this.#ofPage = text;
    try {
      globalThis[this.storage].setItem(this.name, text);
      return true;
    } catch {
      return false;
    }
  }
}
