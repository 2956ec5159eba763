// Notes at the foot of a text: `[^1]` leads to the block that `[^1]:` begins, and that leads back. Either may come first, so
// they are linked when both are there. A reference without a note stays as it was written.

import { element } from "../dom.js";
import { formatNumber, translate } from "../texts/texts.js";

const MAX_WAYS_BACK = 10;

let numTexts = 0; // each has ids of its own

export class Notes {
  #prefix;

  constructor(container) {
    numTexts += 1;
    this.#prefix = `note-${numTexts}`;
    this.container = container;
  }

  /** Links what stands in the text by now. The numbers are those of the first references. */
  link() {
    const notes = new Map();
    for (const note of this.container.querySelectorAll(".note")) if (!notes.has(note.dataset.note)) notes.set(note.dataset.note, { note, references: [] });
    let numNotes = 0;
    for (const reference of this.container.querySelectorAll(".note-reference")) {
      const found = notes.get(reference.dataset.note);
      if (found === undefined || reference.parentElement.closest("a") !== null) {
        unlink(reference);
        continue;
      }
      found.number ??= numNotes += 1;
      found.references.push(reference);
      this.#linkReference(reference, found);
    }
    for (const found of notes.values()) this.#linkNote(found);
  }

  #linkReference(reference, { note, number, references }) {
    if (reference.dataset.number === String(number)) return;
    reference.dataset.number = number;
    const link = element("a", { id: `${this.#prefix}-${number}-${references.length}`, href: `#${this.#prefix}-${number}`, "aria-label": translate("markdown.note", { number }), text: formatNumber(number) });
    link.addEventListener("click", (event) => goTo(event, note));
    reference.replaceChildren(element("sup", {}, link));
  }

  #linkNote({ note, number, references }) {
    const state = number === undefined ? undefined : `${number} ${references.length}`;
    if (note.dataset.state === state) return;
    for (const old of note.querySelectorAll(":scope > :is(.note-number, .note-back)")) old.remove();
    for (const name of ["id", "tabindex", "data-state"]) note.removeAttribute(name);
    if (state === undefined) return;
    note.dataset.state = state;
    note.id = `${this.#prefix}-${number}`;
    note.tabIndex = -1;
    note.prepend(element("span", { class: "note-number", text: `${formatNumber(number)}.` }));
    const links = references.slice(0, MAX_WAYS_BACK).map((reference) => wayBack(reference.querySelector("a"), number));
    note.append(element("span", { class: "note-back" }, ...links));
  }
}

/** More of the text may make another thing of what looked like a note. */
function unlink(reference) {
  if (reference.dataset.number === undefined) return;
  delete reference.dataset.number;
  reference.replaceChildren(`[^${reference.dataset.note}]`);
}

function wayBack(target, number) {
  const link = element("a", { href: `#${target.id}`, "aria-label": translate("markdown.noteBack", { number }), text: "↩" });
  link.addEventListener("click", (event) => goTo(event, target));
  return link;
}

/** The address of the page stays as it is. */
function goTo(event, target) {
  event.preventDefault();
  target.scrollIntoView({ block: "nearest" });
  target.focus({ preventScroll: true });
}
