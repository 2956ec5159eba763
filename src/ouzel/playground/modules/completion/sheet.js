// The text of the completion box: a text area over a copy of its text, in which what the model wrote last is marked. The
// copy gives both their height, so that neither scrolls by itself.

import { element } from "../dom.js";

export class Sheet {
  #written = { start: 0, end: 0 }; // what the model wrote last
  #parts = [document.createTextNode(""), document.createTextNode(""), document.createTextNode("")];
  #frame = null;

  /** `onEdit` is called when a person has changed the text. */
  constructor({ label, placeholder, onEdit }) {
    this.area = element("textarea", { id: "completion-text", "aria-label": label, placeholder, spellcheck: "false", autocomplete: "off" });
    const [before, written, after] = this.#parts;
    const copy = element("div", { class: "copy", "aria-hidden": "true" }, before, element("mark", {}, written), after);
    this.element = element("div", { class: "sheet" }, copy, this.area);
    this.area.addEventListener("input", () => {
      this.#unmark();
      onEdit();
    });
  }

  get text() {
    return this.area.value;
  }

  /** The place of the cursor, or the end of what is selected. */
  get cursor() {
    return this.area.selectionEnd;
  }

  set isLocked(isLocked) {
    this.area.readOnly = isLocked;
  }

  /** Shows another text, in which nothing is marked. */
  show(text) {
    this.area.value = text;
    this.#unmark();
  }

  /** What is written from now on stands at this place. */
  beginAt(place) {
    this.#written = { start: place, end: place };
    this.#draw();
  }

  /** Writes behind what was written last; the cursor of the person stays where it is. */
  write(text) {
    const { end } = this.#written;
    this.area.setRangeText(text, end, end, "preserve");
    this.#written.end = end + text.length;
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  /** Puts the cursor behind what was written last. */
  focusEnd() {
    this.area.focus();
    this.area.setSelectionRange(this.#written.end, this.#written.end);
  }

  #unmark() {
    this.beginAt(this.text.length);
  }

  #draw() {
    this.#frame = null;
    const { start, end } = this.#written;
    const [before, written, after] = this.#parts;
    before.data = this.text.slice(0, start);
    written.data = this.text.slice(start, end);
    after.data = `${this.text.slice(end)}\n`; // an empty last line has its height, too
  }
}
