// The part of the models' dialog for the holder of the admin key: the key, and downloads with their progress.

import { button, element, field, fill } from "../dom.js";
import { sizeText } from "../files/names.js";
import { translate } from "../texts/texts.js";
import { Admin } from "./admin.js";

const STAGES = {
  waiting: "models.pullWaits",
  listing: "models.pullLists",
  downloading: "models.pullLoads",
  verifying: "models.pullVerifies",
  writing: "models.pullWrites",
  done: "models.pullDone",
};

export class AdminPart {
  element = element("section", { class: "admin", "aria-label": translate("models.admin") });
  api = new Admin();
  #pulling = null; // what stops the download

  /** `onChange` is called when the models may be others now; `tell` shows a line. */
  constructor(server, { onChange, tell }) {
    Object.assign(this, { server, onChange, tell });
    this.#draw();
  }

  /** Tells whether a person may change the models. */
  get isAllowed() {
    return this.server.hasAdminKey && this.api.key !== "";
  }

  /** Shows what the server says against a change. A key that it refuses is forgotten. */
  takeFault(error) {
    this.tell(error.message, true);
    if (error.status !== 401) return;
    this.api.key = "";
    this.#draw();
  }

  /** A download ends with the dialog. The next one goes on where it ended. */
  close() {
    this.#pulling?.abort();
  }

  #draw() {
    if (!this.server.hasAdminKey) return fill(this.element, element("p", { class: "muted", text: translate("models.noAdminKey") }));
    fill(this.element, this.isAllowed ? this.#pullForm() : this.#keyForm());
  }

  #keyForm() {
    const input = element("input", { type: "password", id: "admin-key", autocomplete: "off", required: true, pattern: "\\s*[\\x21-\\x7e]+\\s*" });
    const use = element("button", { type: "submit", text: translate("models.useKey") });
    const form = element("form", {}, element("p", { class: "muted", text: translate("models.needsAdminKey") }), field(translate("models.adminKey"), input, translate("models.adminKeyHint")), element("div", { class: "row end" }, use));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.api.key = input.value.trim();
      this.tell("");
      this.#draw();
      this.onChange();
      this.element.querySelector("input").focus();
    });
    return form;
  }

  #pullForm() {
    const input = element("input", { id: "pull-name", autocomplete: "off", required: true, maxlength: 500, placeholder: "owner/name", dir: "ltr" });
    const start = element("button", { type: "submit", id: "pull", text: translate("models.pull") });
    const stop = button(translate("models.stopPull"), () => this.#pulling?.abort(), { hidden: true });
    const progress = element("div", { class: "pull-progress" });
    const form = element("form", {}, field(translate("models.pullLabel"), input, translate("models.pullHint")), element("div", { class: "row end" }, stop, start), progress);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (this.#pulling !== null) return;
      start.hidden = true;
      stop.hidden = false;
      stop.focus();
      await this.#pull(input.value.trim(), progress);
      start.hidden = false;
      stop.hidden = true;
      if (stop === document.activeElement || document.activeElement === document.body) input.focus();
    });
    return form;
  }

  async #pull(name, place) {
    this.#pulling = new AbortController();
    const bar = element("progress", { max: 1, "aria-label": translate("models.pullProgress", { name }) });
    const text = element("small");
    fill(place, bar, text);
    this.tell(translate("models.pulling", { name }));
    try {
      for await (const event of this.api.pull(name, this.#pulling.signal)) show(event, bar, text);
      this.tell(translate("models.pulled", { name }));
    } catch (error) {
      if (error.name === "AbortError") this.tell(translate("models.pullStopped", { name }));
      else this.takeFault(error);
      return fill(place);
    } finally {
      this.#pulling = null;
      await this.onChange();
    }
    const isListed = this.server.models.some((model) => model.name === name);
    fill(place, isListed ? null : button(translate("models.load", { name }), () => this.#load(name, place)));
  }

  /** A server whose models stay in memory lists a model once it is loaded. */
  async #load(name, place) {
    this.tell(translate("models.loading", { name }));
    try {
      await this.api.load(name, false);
      fill(place);
      this.element.querySelector("input").focus();
      this.tell(translate("models.loaded", { name }));
    } catch (error) {
      this.takeFault(error);
    }
    await this.onChange();
  }
}

function show({ status, bytes_done: done, bytes_total: total }, bar, text) {
  if (total > 0) Object.assign(bar, { max: total, value: done });
  const sizes = total > 0 ? translate("models.pullSizes", { done: sizeText(done), total: sizeText(total) }) : "";
  text.textContent = [translate(STAGES[status] ?? "models.pullLoads"), sizes].filter(Boolean).join(" · ");
}
