// The pictures that go with what a person writes, each with a button that takes it away.

import { button, element, fill } from "../dom.js";

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
    return element("li", {}, element("img", { src: image.url, alt: image.name, title: image.name }), remove);
  }

  #remove(image) {
    this.images = this.#images.filter((each) => each !== image);
    this.onRemove();
  }
}
