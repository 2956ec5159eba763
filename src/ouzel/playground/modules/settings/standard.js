// What this browser keeps of settings: with which values a new conversation begins, and the presets.

import { KeptText } from "../storage/kept_text.js";
import { Presets } from "./presets.js";
import { UNSET, readValues } from "./values.js";

/** New conversations begin with the values that were set last. */
export const LAST = "last";
/** New conversations begin with nothing set. */
export const NOTHING = "nothing";
const PRESET = "preset:"; // and its name

// Whether the server is to keep new conversations, and the model to make titles.
const OWN = { isOnServer: true, makesTitles: true };

const kept = new KeptText("localStorage", "ouzel.settings");

export class Standard {
  #last;
  #begin;

  constructor() {
    const { begin, ...values } = stored();
    this.presets = new Presets();
    this.#last = readValues(values).values;
    /** What concerns all conversations of this browser. */
    this.own = Object.fromEntries(Object.entries(OWN).map(([name, unset]) => [name, typeof values[name] === typeof unset ? values[name] : unset]));
    this.#begin = typeof begin === "string" ? begin : LAST;
  }

  /** Returns the values of a new conversation. A preset without a model leaves the one that was used last. */
  get values() {
    const { model } = this.#last;
    if (this.begin === LAST) return this.#last;
    if (this.begin === NOTHING) return { ...UNSET, model };
    const preset = this.presets.get(this.presetName);
    return { ...preset, model: preset.model || model };
  }

  /** Says with what new conversations begin. */
  get begin() {
    const isGone = this.presetName !== "" && this.presets.get(this.presetName) === null;
    return isGone ? LAST : this.#begin;
  }

  set begin(begin) {
    this.#begin = begin;
    this.#keep();
  }

  get presetName() {
    return this.#begin.startsWith(PRESET) ? this.#begin.slice(PRESET.length) : "";
  }

  static beginWith(presetName) {
    return PRESET + presetName;
  }

  /** Sets what concerns all conversations. */
  setOwn(name, value) {
    this.own[name] = value;
    this.#keep();
  }

  /** Notes what was set last. */
  note(values) {
    this.#last = values;
    this.#keep();
  }

  /** Returns the same for settings that are not those of new conversations. */
  fixed() {
    const standard = this;
    return {
      presets: this.presets,
      own: this.own,
      values: this.values,
      note: () => {},
      setOwn: (name, value) => this.setOwn(name, value),
      get begin() {
        return standard.begin;
      },
      set begin(begin) {
        standard.begin = begin;
      },
    };
  }

  #keep() {
    kept.value = JSON.stringify({ ...this.#last, ...this.own, begin: this.#begin });
  }
}

function stored() {
  try {
    const object = JSON.parse(kept.value || "{}");
    return typeof object === "object" && object !== null ? object : {};
  } catch {
    return {};
  }
}
