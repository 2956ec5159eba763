// The side of the page that has settings: whose they are. Its fields come when it is first opened.

import { loadPart } from "../later.js";
import { translate } from "../texts/texts.js";

export class SettingsSide {
  #panel = null;
  #numDrawing = 0;

  /** `needs` are the container, the API, and what the panel tells and asks (panel.js). */
  constructor(settings, needs) {
    Object.assign(this, { needs });
    this.look(settings);
  }

  /** Shows other settings from now on; `caption` says whose they are. */
  look(settings, caption = translate("settings.ofConversation")) {
    Object.assign(this, { shown: settings, caption });
    this.#panel?.look(settings, caption);
  }

  /** Tells whether the fields are those of the conversation that is shown. */
  get isCurrent() {
    return this.#panel?.isCurrent ?? false;
  }

  /** Draws the fields; returns whether they are there. Until then those of before are shown as busy. */
  async draw() {
    const { container } = this.needs;
    this.#numDrawing += 1;
    container.setAttribute("aria-busy", "true");
    try {
      return await this.#draw();
    } finally {
      this.#numDrawing -= 1;
      if (this.#numDrawing === 0) container.removeAttribute("aria-busy");
    }
  }

  async #draw() {
    const part = await loadPart(() => import("./panel.js"));
    if (part === null) return false;
    this.#panel ??= new part.SettingsPanel(this.shown, this.needs);
    this.#panel.look(this.shown, this.caption);
    await this.#panel.draw();
    return true;
  }
}
