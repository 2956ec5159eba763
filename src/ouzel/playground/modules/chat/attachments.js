// The files that go with what a person writes, each as a card with a button that takes it away.

import { arrange, element } from "../dom.js";
import { SentAttachment } from "../files/attachment.js";
import { Chip } from "../files/chip.js";
import { roomTaken, takeRoom } from "../files/limits.js";
import { translate } from "../texts/texts.js";

export class Attachments {
  #chips = new Map();

  /**
   * `list` is the element that shows them; `onRemove` is called when a person has taken one away, and `onChange` when
   * something about them has changed.
   */
  constructor(list, onRemove, onChange = () => {}) {
    Object.assign(this, { list, onRemove, onChange });
  }

  get items() {
    return [...this.#chips.keys()];
  }

  add(items) {
    for (const item of items) {
      const chip = new Chip(item, { onRemove: () => this.#remove(item) });
      this.#chips.set(item, chip);
      item.onChange = () => {
        if (!this.#chips.has(item)) return;
        this.onChange();
        chip.draw();
      };
    }
    this.onChange();
    this.#draw();
  }

  /** Shows the pictures and files of a message that is edited. */
  addSent({ images, files }) {
    this.add([...images.map((image) => new SentAttachment({ image })), ...files.map((file) => new SentAttachment({ file }))]);
  }

  /** Lets each file say what stands against it: the model, and the room that others have left. */
  consider(situation) {
    if (this.#chips.size === 0) return;
    const room = roomTaken(situation.messages);
    for (const [item, chip] of this.#chips) {
      item.consider(situation, room);
      if (!item.refusal) takeRoom(room, item);
      chip.draw();
    }
  }

  /** Takes all files away, and returns what a message has of them. */
  take() {
    const { sent } = this;
    for (const chip of this.#chips.values()) chip.close();
    this.#chips.clear();
    this.#draw();
    return sent;
  }

  /** Returns the files that the server has, and can search. */
  get searchable() {
    return this.items.filter(({ id, uses }) => id && uses.includes("search"));
  }

  get sent() {
    const sent = { images: [], files: [] };
    for (const item of this.items) item.addTo(sent);
    return sent;
  }

  /** Resolves when no file is read or uploaded any more. */
  async settle() {
    while (this.items.some(({ isBusy }) => isBusy)) await Promise.all(this.items.map(({ settled }) => settled));
  }

  #remove(item) {
    this.#chips.get(item).close();
    this.#chips.delete(item);
    item.discard();
    this.#draw();
    this.onChange();
    this.onRemove();
  }

  #draw() {
    arrange(this.list, [...this.#chips.values()].map((chip) => chip.element));
  }
}

export function attachmentList() {
  return element("ul", { class: "attachments", "aria-label": translate("composer.filesToSend") });
}
