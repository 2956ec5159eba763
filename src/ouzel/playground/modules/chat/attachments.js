// The pictures that go with what a person writes, each with a button that takes it away.

import { button, element, fill } from "../dom.js";
import { isPicture } from "./images.js";

export class Attachments {
  #images = [];

  /** `list` is the element that shows them; `onRemove` is called when a person has taken one away. */
  constructor(list, onRemove) {
    Object.assign(this, { list, onRemove });
  }

  get images() {
    return this.#images;
  }

  set images(images) {
    this.#images = images;
    fill(this.list, ...images.map((image) => this.#item(image)));
  }

  #item(image) {
    const remove = button(`Remove ${image.name}`, () => this.#remove(image), { icon: "×" });
    return element("li", {}, attachmentView(image), remove);
  }

  #remove(image) {
    this.images = this.#images.filter((each) => each !== image);
    this.onRemove();
  }
}

/** Returns a picture, or the name of another file. */
export function attachmentView({ name, url }, properties = {}) {
  if (isPicture(url)) return element("img", { src: url, alt: name, title: name, ...properties });
  return element("span", { class: "file-name", text: name });
}
