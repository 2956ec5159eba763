// Two models, or one with two sets of settings, answer the same question side by side. Each column is a conversation.

import { button, element, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { Column } from "./column.js";

export class Compare {
  #columns;
  #tabs; // on a phone one column is shown
  #hint = element("p", { class: "muted compare-hint", text: translate("compare.hint") });

  /** `page` has what the columns share. Settings that are set here are not those of new conversations. */
  constructor(container, page) {
    Object.assign(this, { container, page });
    const standard = page.settings.standard.fixed();
    this.#columns = [1, 2].map((number) => new Column(page, number, standard));
    this.#tabs = this.#columns.map((_, index) => button("", () => this.#show(index)));
    const tabs = element("div", { class: "column-tabs row", role: "group", "aria-label": translate("compare.columns") }, ...this.#tabs);
    fill(container, this.#hint, tabs, element("div", { class: "columns" }, ...this.#columns.map((column) => column.element)));
    this.begin();
    this.#show(0);
  }

  /** Begins anew: with the model that is chosen, and another one where there is one. */
  begin() {
    const { model, server } = this.page.settings;
    const other = server.chattingModels.find(({ name }) => name !== model.name) ?? model;
    const hasBegun = this.#hasBegun;
    this.#columns.forEach((column, index) => column.begin(hasBegun ? null : [model, other][index].name)); // a second question goes to the same two
    this.draw();
  }

  get isAnswering() {
    return this.#columns.some(({ chat }) => chat.isAnswering);
  }

  get #hasBegun() {
    return this.#columns.some((column) => !column.isEmpty);
  }

  /** Returns the conversation of this key for others, which go on with its answer; the columns begin anew then. */
  release(key) {
    const column = this.#columns.find(({ chat }) => key !== undefined && chat.current.key === key);
    if (column === undefined) return null;
    const { current } = column.chat;
    this.begin();
    return current;
  }

  get situation() {
    return this.#columns[0].chat.situation;
  }

  /** Asks both. Returns false where nothing was sent. */
  send(text, attached) {
    if (!this.#columns.every(({ chat }) => chat.maySend(attached))) return false;
    for (const column of this.#columns) column.send(text, { images: [...attached.images], files: [...attached.files] });
    return true;
  }

  stop() {
    for (const { chat } of this.#columns) chat.stop();
  }

  draw() {
    this.#hint.hidden = this.#hasBegun;
    for (const [index, column] of this.#columns.entries()) {
      column.draw();
      fill(this.#tabs[index], `${column.number} · `, element("bdi", { text: column.modelName }));
    }
  }

  #show(shown) {
    for (const [index, column] of this.#columns.entries()) {
      column.element.classList.toggle("is-shown", index === shown);
      this.#tabs[index].setAttribute("aria-pressed", String(index === shown));
    }
    this.#columns[shown].chat.thread.followEnd();
  }
}
