// The presets above the settings: save what is set under a name, choose, rename, delete, export and import.

import { confirmed, openDialog } from "../dialogs/dialog.js";
import { button, download, element, field, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { LAST, NOTHING, Standard } from "./standard.js";

const MAX_NAME = 40;

export class PresetsField {
  #select = element("select", { id: "preset" });
  #begin = element("select", { id: "begin-with" });
  #state = element("p", { role: "status", class: "preset-state" });
  #file = element("input", { type: "file", accept: "application/json,.json", hidden: true, id: "preset-file", "aria-label": translate("presets.file") });
  #own = element("span", { class: "row" }); // what can be done with the preset that is chosen

  /** `onTake` is called when a preset has been put in the place of what was set. */
  constructor(settings, { onTake }) {
    Object.assign(this, { settings, onTake, presets: settings.standard.presets });
    this.#select.addEventListener("change", () => this.#take(this.#select.value));
    this.#begin.addEventListener("change", () => (settings.standard.begin = this.#begin.value));
    this.#file.addEventListener("change", () => this.#import());
  }

  draw() {
    this.#fillSelects("");
    const all = element(
      "div",
      { class: "row" },
      button(translate("presets.save"), () => this.#askName("", (name) => this.#save(name))),
      this.#own,
      button(translate("presets.export"), () => download("ouzel-presets.json", this.presets.text, "application/json")),
      button(translate("presets.import"), () => this.#file.click()),
      this.#file,
    );
    return [field(translate("presets.preset"), this.#select), all, field(translate("presets.begin"), this.#begin), this.#state];
  }

  #fillSelects(chosen) {
    const { names } = this.presets;
    const options = () => names.map((name) => element("option", { value: name, text: name }));
    fill(this.#select, element("option", { value: "", text: translate(names.length > 0 ? "presets.choose" : "presets.none") }), ...options());
    this.#select.value = chosen;
    const begins = names.map((name) => element("option", { value: Standard.beginWith(name), text: translate("presets.beginPreset", { name }) }));
    fill(this.#begin, element("option", { value: LAST, text: translate("presets.beginLast") }), element("option", { value: NOTHING, text: translate("presets.beginNothing") }), ...begins);
    this.#begin.value = this.settings.standard.begin;
    fill(
      this.#own,
      ...(chosen === ""
        ? []
        : [
            button(translate("presets.rename"), () => this.#askName(chosen, (name) => this.#rename(chosen, name))),
            button(translate("presets.delete"), () => this.#remove(chosen), { class: "danger" }),
          ]),
    );
  }

  #take(name) {
    const values = this.presets.get(name);
    if (values !== null) this.settings.take({ ...values, model: this.#servedModel(values.model) });
    this.onTake(name);
  }

  /** A preset of another server may name a model that is not here. */
  #servedModel(name) {
    return this.settings.server.models.some((model) => model.name === name) ? name : this.settings.values.model;
  }

  /** Shows which preset has been chosen. */
  choose(name) {
    this.#fillSelects(name);
  }

  #save(name) {
    this.presets.save(name, { ...this.settings.values, model: this.settings.model.name });
    this.#show(name, translate("presets.saved"));
  }

  #rename(name, newName) {
    const isStandard = this.settings.standard.begin === Standard.beginWith(name);
    this.presets.rename(name, newName);
    if (isStandard) this.settings.standard.begin = Standard.beginWith(newName);
    this.#show(newName, translate("presets.renamed"));
  }

  async #remove(name) {
    if (!(await confirmed(translate("presets.deleteTitle"), translate("presets.deleteQuestion", { name }), translate("presets.delete")))) return;
    this.presets.remove(name);
    this.#show("", translate("presets.deleted"));
  }

  #show(name, text) {
    this.#fillSelects(this.presets.get(name) === null ? "" : name);
    this.#select.focus();
    this.#tell(this.presets.isKept ? text : translate("presets.notKept"), !this.presets.isKept);
  }

  async #import() {
    const [file] = this.#file.files;
    if (file === undefined) return;
    try {
      const { names, refused } = await this.presets.import(file);
      const rest = refused.length > 0 ? translate("presets.unknown", { names: refused.join(", ") }) : "";
      this.#show("", [translate("presets.imported", { count: names.length }), rest].filter(Boolean).join(" "));
    } catch (error) {
      this.#tell(error.message, true);
    } finally {
      this.#file.value = "";
    }
  }

  #askName(name, use) {
    const input = element("input", { id: "preset-name", required: true, maxlength: MAX_NAME, "aria-label": translate("presets.name") });
    input.value = name;
    const form = element("form", {}, input, element("div", { class: "row end" }, element("button", { type: "submit", class: "primary", text: translate("presets.keep") })));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close();
      if (input.value.trim() !== "") use(input.value.trim());
    });
    const dialog = openDialog(translate("presets.name"), [form]);
  }

  #tell(text, isFault = false) {
    this.#state.classList.toggle("fault", isFault);
    this.#state.textContent = text;
  }
}
