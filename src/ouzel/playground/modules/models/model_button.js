// The name of the model in the bar: a button that opens the models' dialog, which is loaded when it is first asked for.

import { byId } from "../dom.js";
import { openPart } from "../later.js";

export class ModelButton {
  /** `onTake` is called when another model has been chosen, `onChange` when the server's models may be others. */
  constructor({ api, settings, onTake, onChange }) {
    Object.assign(this, { api, settings, onTake, onChange });
    byId("model").addEventListener("click", () => this.choose({ chosen: settings.model.name, onChoose: (name) => this.#take(name) }));
  }

  draw() {
    byId("model-name").textContent = this.settings.model.name;
  }

  /** Shows the models; `chosen` is marked, and `onChoose` gets the name of the one that a person chooses. */
  choose = (choice) => {
    const { settings, api, onChange } = this;
    openPart(() => import("./models_dialog.js"), (part) => new part.ModelsDialog({ server: settings.server, api, onChange, ...choice }));
  };

  #take(name) {
    this.settings.set("model", name);
    this.onTake();
  }
}
