// What an empty conversation shows: examples for the model, and for the demo model how to serve a real one.

import { announce } from "../announcer.js";
import { ROOT } from "../api.js";
import { button, byId, element, fill } from "../dom.js";
import { translate, translateParts } from "../texts/texts.js";
import { examplesOf } from "./examples.js";

const COMMAND = "ouzel serve Qwen/Qwen3-4B --weights int4";

export class Welcome {
  #model = null; // whose examples are shown

  /** `onSettings` is called when an example has set something. */
  constructor({ settings, onSettings }) {
    Object.assign(this, { settings, onSettings });
    this.list = element("ul", { class: "examples", "aria-label": translate("welcome.examples") });
    this.demo = element("p", { class: "muted demo-line" });
    byId("welcome").append(this.list, this.demo);
  }

  /** Draws the examples of the chosen model. */
  draw() {
    const { model, server } = this.settings;
    if (model === this.#model) return;
    this.#model = model;
    fill(this.list, ...examplesOf(model, server).map((example) => element("li", {}, this.#button(example))));
    const isDemo = server.demoModels.includes(model.name);
    fill(this.demo, ...(isDemo ? demoParts() : []));
  }

  #button(example) {
    const { label, question } = example;
    const shown = button(label, () => this.#use(example), { class: "example" });
    shown.append(element("small", { text: question }));
    return shown;
  }

  /** Writes the question, which a person may change before they send it. */
  #use({ label, question, values, needsFile }) {
    this.settings.takeOnce({ ...this.settings.values, ...values });
    this.onSettings();
    const area = byId("prompt");
    area.value = question;
    area.dispatchEvent(new Event("input"));
    area.focus();
    announce(translate("welcome.isWritten", { example: label }));
    if (needsFile) byId("attach").click();
  }
}

function demoParts() {
  const command = element("code", { dir: "ltr", text: COMMAND });
  const link = element("a", { href: new URL("about", ROOT).href, text: translate("page.about") });
  return translateParts("welcome.isDemo", { command, link });
}
