// One of the two columns of a comparison: a conversation with settings of its own.

import { Chat } from "../chat/chat.js";
import { Conversation, titleOfMessage } from "../chat/conversation.js";
import { button, element, fill } from "../dom.js";
import { Settings } from "../settings/settings.js";
import { frozen } from "../settings/values.js";
import { translate } from "../texts/texts.js";

export class Column {
  #model = button("", () => this.#chooseModel(), { class: "column-model model-button", "aria-haspopup": "dialog" });
  #preset = element("select", { "aria-label": translate("presets.preset") });
  #open = button(translate("compare.open"), () => this.page.onOpen(this.chat.current.key));
  #toEnd = button(translate("thread.toEnd"), () => {}, { class: "to-end", hidden: true });

  /** `page` has what both columns share: the API, the library, the answers that are made, notices, the choice of a model, and the panel of settings. */
  constructor(page, number, standard) {
    Object.assign(this, { page, number });
    const { api, library, running, server } = page;
    this.settings = new Settings(server, standard, { settings: null });
    this.settings.onKeep = (conversation) => library.keepSettings(conversation);
    this.thread = element("div", { class: "thread column-thread", tabindex: -1, role: "region", "aria-label": translate("compare.column", { number }) });
    const view = { container: this.thread, toEnd: this.#toEnd, notice: page.notice, onState: () => page.onState(), turnOn: (tool) => this.settings.turnOn(tool), chooseModel: page.chooseModel, release: () => null };
    this.chat = new Chat({ api, settings: this.settings, library, running, view });
    this.#preset.addEventListener("change", () => this.#takePreset());
    const set = button(translate("settings.settings"), () => page.onSettings(this.settings, translate("compare.settingsOf", { number, model: this.modelName })));
    const head = element("header", { class: "column-head" }, this.#model, this.#preset, set, this.#open);
    this.element = element("div", { class: "column" }, head, this.thread, this.#toEnd);
  }

  /** Begins an empty conversation. A model that is named takes the place of the one that was used last. */
  begin(model = null) {
    const { values } = this.settings;
    this.chat.begin(new Conversation({ settings: frozen(model === null ? values : { ...values, model }) }));
  }

  send(text, attached) {
    const { current } = this.chat;
    const title = titleOfMessage(text, attached);
    current.title ||= translate("compare.titleOf", { title, model: this.modelName });
    this.chat.send(text, attached);
  }

  get isEmpty() {
    return this.chat.current.nodes.length === 0;
  }

  get modelName() {
    return this.settings.model.name;
  }

  draw() {
    const { presets } = this.settings.standard;
    const label = translate("compare.model", { number: this.number, model: this.modelName });
    fill(this.#model, element("bdi", { text: this.modelName }));
    this.#model.setAttribute("aria-label", label);
    this.#open.hidden = this.isEmpty || this.chat.isAnswering;
    this.#preset.hidden = presets.names.length === 0;
    const options = presets.names.map((name) => element("option", { value: name, text: name }));
    const { value } = this.#preset;
    fill(this.#preset, element("option", { value: "", text: translate("presets.choose") }), ...options);
    this.#preset.value = presets.names.includes(value) ? value : "";
  }

  #chooseModel() {
    const onChoose = (name) => {
      this.settings.set("model", name);
      this.chat.redraw();
      this.page.onState();
    };
    this.page.chooseModel({ chosen: this.modelName, onChoose });
  }

  #takePreset() {
    const values = this.settings.standard.presets.get(this.#preset.value);
    if (values !== null) this.settings.take({ ...values, model: values.model || this.modelName });
    this.page.onState();
  }
}
