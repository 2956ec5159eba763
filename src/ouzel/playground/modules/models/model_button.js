// The name of the model in the bar: a button that opens the models' dialog, which is loaded when it is first asked for.

import { byId } from "../dom.js";

export class ModelButton {
  /** `onTake` is called when another model has been chosen, `onChange` when the server's models may be others. */
  constructor({ api, settings, notice, onTake, onChange }) {
    Object.assign(this, { api, settings, notice, onTake, onChange });
    byId("model").addEventListener("click", () => this.choose({ chosen: settings.model.name, onChoose: (name) => this.#take(name) }));
  }

  draw() {
    byId("model-name").textContent = this.settings.model.name;
  }

  /** Shows the models; `chosen` is marked, and `onChoose` gets the name of the one that a person chooses. */
  choose = async (choice) => {
    try {
      const { ModelsDialog } = await import("./models_dialog.js");
      new ModelsDialog({ server: this.settings.server, api: this.api, onChange: this.onChange, ...choice });
    } catch (error) {
      this.notice(error.message); // the server may be away
    }
  };

  #take(name) {
    this.settings.set("model", name);
    this.onTake();
  }
}
