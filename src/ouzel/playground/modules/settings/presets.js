// Settings that a person keeps under a name in this browser. They go to other browsers as JSON.

import { shortName } from "../files/names.js";
import { KeptText } from "../storage/kept_text.js";
import { translate } from "../texts/texts.js";
import { readValues, setValues } from "./values.js";

const FORMAT = "ouzel.presets";
const MAX_PRESETS = 200; // of a file
const MAX_FILE = 5_000_000; // bytes

const kept = new KeptText("localStorage", FORMAT);

export class Presets {
  #presets = new Map(); // values by name
  isKept = true; // by the browser, beyond this page

  constructor() {
    try {
      this.#take(JSON.parse(kept.value || "{}"), { isForeign: false });
    } catch {
      this.#presets.clear(); // somebody else wrote there
    }
  }

  get names() {
    return [...this.#presets.keys()].sort((one, other) => one.localeCompare(other));
  }

  /** Returns the values of a preset; null where there is none of this name. */
  get(name) {
    return this.#presets.get(name) ?? null;
  }

  save(name, values) {
    this.#presets.set(shortName(name), values);
    this.#keep();
  }

  rename(name, newName) {
    const values = this.get(name);
    this.#presets.delete(name);
    this.save(newName, values);
  }

  remove(name) {
    this.#presets.delete(name);
    this.#keep();
  }

  /** Returns all presets as JSON. */
  get text() {
    return JSON.stringify(this.#object(), null, 2);
  }

  /**
   * Adds the presets of a file; they replace those of the same names. Returns their names, and the names of values that
   * are not known here. Throws an Error that says what is wrong with the file.
   */
  async import(file) {
    if (file.size > MAX_FILE) throw new Error(translate("presets.tooLarge"));
    const object = parsed(await file.text());
    if (object?.format !== FORMAT || typeof object.presets !== "object" || object.presets === null) throw new Error(translate("presets.noPresets"));
    const count = Object.keys(object.presets).length;
    if (count > MAX_PRESETS) throw new Error(translate("presets.tooMany", { count, limit: MAX_PRESETS }));
    const taken = this.#take(object, { isForeign: true });
    this.#keep();
    return taken;
  }

  #take({ presets = {} }, { isForeign }) {
    const refused = new Set();
    const names = [];
    for (const [name, object] of Object.entries(presets)) {
      const read = readValues(object, { isForeign });
      for (const each of read.refused) refused.add(shortName(each));
      names.push(shortName(name));
      this.#presets.set(shortName(name), read.values);
    }
    return { names, refused: [...refused] };
  }

  #object() {
    return { format: FORMAT, presets: Object.fromEntries([...this.#presets].map(([name, values]) => [name, setValues(values)])) };
  }

  #keep() {
    this.isKept = kept.keep(JSON.stringify(this.#object()));
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(translate("presets.noJson", { why: error.message }));
  }
}
