// The choice of a collection of files that the model searches. A new one is made from the files of the chat.

import { confirmed } from "../dialogs/dialog.js";
import { button, element, field, fill } from "../dom.js";
import { shortName } from "../files/names.js";
import { Collections } from "../storage/collections.js";
import { translate, translateParts } from "../texts/texts.js";

export class CollectionsField {
  #collections;
  #listed = [];
  #isMaking = false;
  #select = element("select", { id: "set-collection" });
  #make = button(translate("collections.make"), () => this.#create());
  #remove = button(translate("collections.delete"), () => this.#delete(), { class: "danger" });
  #state = element("div", { class: "collection-state", role: "status" });

  /** `attachedFiles` returns the files of the chat that can be searched, and `onChange` is called when another one is chosen. */
  constructor({ api, settings, attachedFiles, onChange }) {
    Object.assign(this, { settings, attachedFiles, onChange });
    this.#collections = new Collections(api);
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
  }

  /** Returns the elements, and asks the server for its collections. */
  draw() {
    this.#load().catch((error) => this.#tell(error.message, true));
    const hint = translate("collections.hint");
    return element("div", { class: "collections" }, field(translate("collections.label"), this.#select, hint), element("div", { class: "row" }, this.#make, this.#remove), this.#state);
  }

  async #load() {
    this.#listed = await this.#collections.list();
    const { collection } = this.settings.values;
    if (!this.#listed.some(({ id }) => id === collection)) this.settings.set("collection", ""); // it is gone
    this.#fillSelect();
  }

  #fillSelect() {
    const options = this.#listed.map((each) => element("option", { value: each.id, text: labelOf(each) }));
    fill(this.#select, element("option", { value: "", text: translate("collections.none") }), ...options);
    this.#select.value = this.settings.values.collection;
    this.#remove.hidden = this.#select.value === "";
    this.#make.disabled = this.#isMaking;
  }

  #choose(id) {
    this.settings.set("collection", id);
    this.#fillSelect();
    this.#tell("");
    this.onChange();
  }

  async #create() {
    const files = new Map(this.attachedFiles().filter(({ isDeleted }) => !isDeleted).map((file) => [file.id, file]));
    if (files.size === 0) return this.#tell(translate("collections.attachFirst"));
    this.#isMaking = true;
    if (document.activeElement === this.#make) this.#select.focus(); // a disabled button loses the focus
    this.#make.disabled = true;
    try {
      await this.#index(files);
    } catch (error) {
      this.#tell(error.message, true);
    } finally {
      this.#isMaking = false;
      this.#fillSelect();
    }
  }

  async #index(files) {
    const [first] = files.values();
    const name = files.size === 1 ? first.name : translate("collections.name", { name: first.name, number: files.size - 1 });
    let made = await this.#collections.create(name, [...files.keys()]);
    this.#listed = [made, ...this.#listed];
    this.#choose(made.id);
    for (const file of files.values()) if (file.uses?.includes("search")) file.setUse("search"); // not in the prompt too
    for await (made of this.#collections.progress(made)) this.#showProgress(made);
    this.#listed = this.#listed.map((each) => (each.id === made.id ? made : each));
    const { completed, total, failed } = made.file_counts;
    const faults = failed > 0 ? await this.#collections.faults(made) : new Map();
    const lines = [...faults].map(([id, message]) => element("li", {}, ...translateParts("collections.fault", { file: element("bdi", { text: shortName(files.get(id)?.name ?? id) }), message })));
    const text = translate("collections.searchable", { completed, files: numText(total) });
    fill(this.#state, element("p", { text }), lines.length > 0 ? element("ul", { class: "fault" }, ...lines) : null);
  }

  #showProgress({ file_counts: { completed, failed, total } }) {
    const text = translate("collections.indexing", { files: numText(total), done: completed + failed });
    if (this.#state.textContent === text) return; // the same would be told again
    const bar = element("progress", { max: Math.max(total, 1), value: completed + failed, "aria-label": translate("collections.indexed") });
    fill(this.#state, element("p", { text }), bar);
  }

  async #delete() {
    const chosen = this.#listed.find(({ id }) => id === this.#select.value);
    if (!(await confirmed(translate("collections.deleteTitle"), translate("collections.deleteQuestion", { name: shortName(chosen.name || chosen.id) }), translate("collections.delete")))) return;
    try {
      await this.#collections.remove(chosen);
      this.#listed = this.#listed.filter((each) => each !== chosen);
      this.#choose("");
      this.#select.focus();
      this.#tell(translate("collections.deleted"));
    } catch (error) {
      this.#tell(error.message, true);
    }
  }

  #tell(text, isFault = false) {
    fill(this.#state, text ? element("p", { class: isFault ? "fault" : null, text }) : null);
  }
}

function labelOf({ id, name, file_counts: { total } }) {
  return translate("collections.entry", { name: shortName(name || id), files: numText(total) });
}

function numText(count) {
  return translate("collections.numFiles", { count });
}
