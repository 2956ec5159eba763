// The served models in a dialog: a person chooses one, and the holder of the admin key loads, unloads and downloads them.

import { openDialog } from "../dialogs/dialog.js";
import { button, element, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { AdminPart } from "./admin_part.js";
import { abilityTexts, figureTexts, isInMemory, stateText } from "./describe.js";

export class ModelsDialog {
  #dialog;
  #list = element("ul", { class: "models" });
  #state = element("p", { role: "status", class: "models-state" });
  #admin;
  #busy = new Set(); // names of models that are being loaded or unloaded

  /** `onChoose` gets the name of the model that a person chooses. `chosen` is the name of the present one. */
  constructor({ server, api, chosen, onChoose, onChange = () => {}, title = translate("models.title") }) {
    Object.assign(this, { server, api, chosen, onChoose, onChange });
    this.#admin = new AdminPart(server, { onChange: () => this.#renew(), tell: (text, isFault) => this.#tell(text, isFault) });
    this.#draw();
    const own = this.#list.querySelector("[aria-current] .model-name");
    this.#dialog = openDialog(title, [this.#list, this.#state, this.#admin.element], {
      isWide: true,
      focused: own ?? this.#list.querySelector("button"),
      onClose: () => this.#admin.close(),
    });
    this.#renew();
  }

  /** Asks the server what it serves now. */
  async #renew() {
    try {
      await this.server.loadModels(this.api);
    } catch (error) {
      return this.#tell(error.message, true);
    }
    this.#draw();
    this.onChange();
  }

  #draw() {
    const focused = document.activeElement?.closest(".models [data-action]")?.dataset.action;
    fill(this.#list, ...this.server.models.map((model) => this.#row(model)));
    if (focused === undefined || document.activeElement !== document.body) return;
    const same = [...this.#list.querySelectorAll("[data-action]")].find(({ dataset }) => dataset.action === focused);
    (same ?? this.#list.querySelector("button"))?.focus();
  }

  #row(model) {
    const { name, failure } = model;
    const isChosen = name === this.chosen;
    const choose = button(name, () => this.#choose(name), { class: "model-name", dir: "ltr", data: { action: `choose ${name}` } });
    const facts = [stateText(model), ...figureTexts(model, this.server.modelsMemoryBytes)].join(" · ");
    const abilities = abilityTexts(model).map((text) => element("span", { class: "ability", text }));
    return element(
      "li",
      { class: isChosen ? "current" : null, "aria-current": isChosen ? "true" : null },
      element("div", { class: "model-head" }, choose, isChosen ? element("span", { class: "muted", text: translate("models.chosen") }) : null, this.#change(model)),
      element("div", { class: "abilities" }, ...abilities),
      element("small", { text: facts }),
      failure === null ? null : element("small", { class: "fault", text: failure }),
    );
  }

  #change(model) {
    if (!this.#admin.isAllowed || model.parent !== null) return null;
    const { name } = model;
    const isLoaded = isInMemory(model);
    const label = isLoaded ? translate("models.unload", { name }) : translate("models.load", { name });
    const change = button(label, () => this.#move(name, isLoaded), {
      icon: isLoaded ? translate("models.unloadShort") : translate("models.loadShort"),
      disabled: this.#busy.has(name),
      data: { action: `move ${name}` },
    });
    return change;
  }

  /** A server whose models do not come and go takes a model off its list when it is unloaded. */
  async #move(name, isLoaded) {
    this.#busy.add(name);
    this.#tell(translate(isLoaded ? "models.unloading" : "models.loading", { name }));
    try {
      await (isLoaded ? this.#admin.api.unload(name) : this.#admin.api.load(name, true));
      this.#tell(translate(isLoaded ? "models.unloaded" : "models.loaded", { name }));
    } catch (error) {
      this.#admin.takeFault(error);
    } finally {
      this.#busy.delete(name);
      await this.#renew();
    }
  }

  #choose(name) {
    this.#dialog.close();
    this.onChoose(name);
  }

  #tell(text, isFault = false) {
    this.#state.classList.toggle("fault", isFault);
    this.#state.textContent = text;
  }
}
