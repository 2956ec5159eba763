// The panel of settings: each number with the model's own default as its placeholder, and its range from the API.

import { button, element, field, fill } from "../dom.js";
import { offlineParts } from "../offline/section.js";
import { PYTHON } from "../server.js";
import { translate } from "../texts/texts.js";
import { BUILTIN_NAMES } from "../tools/builtin.js";
import { CollectionsField } from "./collections_field.js";
import { McpField } from "./mcp_field.js";
import { PresetsField } from "./presets_field.js";
import { NUMBERS } from "./values.js";

const [LEFT_TO_RIGHT, END] = ["\u2066", "\u2069"]; // around a range, whose signs a right-to-left text would turn
const MAX_SLIDER = 10; // a wider range is no slider
const SCHEMA_EXAMPLE = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}';
const TOOLS_EXAMPLE = '[{"name": "get_weather", "description": "…", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]';

export class SettingsPanel {
  #drawn = null; // the conversation whose settings are shown

  /** `onChange` is called when something has been set; `attachedFiles` returns the files of this chat that can be searched. */
  constructor(settings, { container, api, onChange, attachedFiles }) {
    Object.assign(this, { container, settings, api, onChange });
    this.collections = new CollectionsField({ api, settings, attachedFiles, onChange });
  }

  /** Shows other settings from now on; `caption` says whose they are. */
  look(settings, caption) {
    Object.assign(this, { shown: settings, caption });
  }

  /** Tells whether the panel shows the settings of the conversation that is shown. */
  get isCurrent() {
    return this.#drawn === this.shown.conversation;
  }

  /** Draws the panel for the conversation that is shown and its model, whose defaults are asked for. */
  async draw() {
    const settings = this.shown.of(this.shown.conversation); // what is typed belongs to it, whatever is shown by then
    const { model, conversation } = settings;
    this.#drawn = conversation;
    const [defaults, voices] = await Promise.all([
      model.defaults(this.api).catch(() => ({})),
      settings.server.voices(this.api).catch(() => []), // its model may not be in memory
      settings.server.loadFields(this.api),
    ]);
    if (settings.model !== model || this.#drawn !== conversation) return; // another one has been chosen meanwhile
    this.settings = this.collections.settings = settings;
    const focused = this.container.contains(document.activeElement) ? document.activeElement.id : "";
    this.presets = new PresetsField(settings, { onTake: (name) => this.#takePreset(name) });
    fill(
      this.container,
      element("p", { class: "muted", text: this.caption }),
      section(translate("presets.presets"), settings.standard.presets.names.length > 0, ...this.presets.draw()),
      this.#text("system", translate("settings.system"), translate("settings.systemHint"), 4),
      section(translate("settings.sampling"), true, ...NUMBERS.map((name) => this.#number(name, defaults[name])), this.#stop()),
      section(translate("settings.reasoning"), settings.values.reasoning !== "", this.#reasoning()),
      section(translate("settings.structured"), settings.values.hasSchema, ...this.#schema()),
      section(translate("settings.tools"), settings.values.builtinTools.length > 0 || settings.values.tools !== "", ...this.#tools()),
      ...this.#hosted(),
      section(translate("settings.tokens"), settings.values.showsTokens, ...this.#tokens()),
      ...this.#reading(voices),
      section(translate("settings.conversations"), false, this.#keeping(), this.#ownCheck("makesTitles", translate("settings.makesTitles"))),
      ...this.#offlineCopy(),
      button(translate("settings.reset"), () => this.#reset(), { class: "quiet" }),
    );
    if (focused !== "") document.getElementById(focused)?.focus();
  }

  async #takePreset(name) {
    this.#changed();
    await this.draw();
    this.presets.choose(name);
  }

  #changed() {
    this.onChange();
  }

  async #reset() {
    this.settings.reset();
    this.#changed();
    await this.draw();
    this.container.lastElementChild.focus();
  }

  #number(name, standard) {
    const described = this.settings.server.field(name);
    const fault = element("small", { class: "fault", role: "alert" });
    const value = this.settings.values.numbers[name] ?? "";
    const input = element("input", {
      type: "text",
      inputmode: described.isInteger ? "numeric" : "decimal",
      id: `set-${name}`,
      value,
      placeholder: placeholderOf(standard),
      autocomplete: "off",
    });
    const slider = isSlidable(described) ? sliderOf(name, described, value, standard) : null;
    const take = (text) => {
      this.settings.setNumber(name, text.trim());
      fault.textContent = this.settings.faultOf(name, text.trim());
      input.setAttribute("aria-invalid", String(fault.textContent !== ""));
      this.#changed();
    };
    input.addEventListener("input", () => {
      if (slider && input.value !== "") slider.value = input.value;
      take(input.value);
    });
    slider?.addEventListener("input", () => take((input.value = slider.value)));
    take(value);
    const controls = element("span", { class: "number" }, slider, input);
    return element("div", {}, field(name.replaceAll("_", " "), controls, hintText(name, described)), fault);
  }

  #text(name, label, hint, rows, { fault = null, faultNow = null, ...properties } = {}) {
    const area = element("textarea", { id: `set-${name}`, rows, spellcheck: "false", ...properties });
    area.value = this.settings.values[name];
    area.addEventListener("input", () => {
      this.settings.set(name, area.value);
      this.#changed();
      if (fault) fault.textContent = faultNow();
    });
    return field(label, area, hint);
  }

  #check(name, label) {
    const box = element("input", { type: "checkbox", id: `set-${name}`, checked: this.settings.values[name] });
    box.addEventListener("change", () => {
      this.settings.set(name, box.checked);
      this.#changed();
    });
    return element("label", { class: "check" }, box, label);
  }

  /** Returns a box for what concerns all conversations of this browser. */
  #ownCheck(name, label) {
    const { standard } = this.settings;
    const box = element("input", { type: "checkbox", id: `set-${name}`, checked: standard.own[name] });
    box.addEventListener("change", () => standard.setOwn(name, box.checked));
    return element("label", { class: "check" }, box, label);
  }

  #select(name, label, choices, hint = "") {
    const options = choices.map(([value, text]) => element("option", { value, text }));
    const select = element("select", { id: `set-${name}` }, ...options);
    select.value = this.settings.values[name];
    select.addEventListener("change", () => {
      this.settings.set(name, select.value);
      this.#changed();
    });
    return field(label, select, hint);
  }

  #stop() {
    return this.#text("stop", "stop", translate("settings.stopHint"), 2);
  }

  #reasoning() {
    const choices = [["", translate("settings.asModel")], ["on", translate("settings.on")], ["off", translate("settings.off")]];
    const hint = this.settings.model.capabilities.has("reasoning") ? "" : translate("settings.noReasoning");
    return this.#select("reasoning", translate("settings.reasoningLabel"), choices, hint);
  }

  #schema() {
    const fault = element("small", { class: "fault", role: "alert", data: { of: "Schema" } });
    const hint = translate("settings.schemaHint");
    const area = this.#text("schema", translate("settings.schema"), hint, 6, { fault, faultNow: () => this.settings.schemaFault, placeholder: SCHEMA_EXAMPLE });
    return [this.#check("hasSchema", translate("settings.hasSchema")), area, fault];
  }

  /** Returns a section with the tools that the server runs; none without such tools. */
  #hosted() {
    const { server, values } = this.settings;
    const boxes = server.hostedTools.map(({ name, entry }) => this.#choice("hostedTools", `hosted-${name}`, name, labelOf(entry)));
    const hasMcp = server.hostedTools.some(({ entry }) => entry.type === "mcp") || server.takesMcpUrls;
    const approval = hasMcp ? this.#check("asksForApproval", translate("settings.approval")) : null;
    const search = server.searchesFiles ? this.collections.draw() : null;
    const own = server.takesMcpUrls ? new McpField(this.settings, { onChange: () => this.#changed() }).draw() : null;
    const parts = [...boxes, own, approval, search].filter((part) => part !== null);
    if (parts.length === 0) return [];
    return [section(translate("settings.hostedTools"), values.hostedTools.length + values.mcpServers.length > 0 || values.collection !== "", ...parts)];
  }

  #tools() {
    const fault = element("small", { class: "fault", role: "alert", data: { of: "Tools" } });
    const hint = translate("settings.toolsHint");
    const offered = BUILTIN_NAMES.map((name) => this.#builtin(name));
    const own = this.#text("tools", translate("settings.ownTools"), hint, 6, { fault, faultNow: () => this.settings.toolsFault, placeholder: TOOLS_EXAMPLE });
    return [...offered, this.#check("runsBuiltinTools", translate("settings.runBuiltin")), own, fault];
  }

  #builtin(name) {
    return this.#choice("builtinTools", `tool-${name}`, name, translate("settings.offerBuiltin", { name }));
  }

  /** Returns a box that adds a name to a list of the settings. */
  #choice(list, id, name, label) {
    const names = () => this.settings.values[list];
    const box = element("input", { type: "checkbox", id, checked: names().includes(name) });
    box.addEventListener("change", () => {
      this.settings.set(list, box.checked ? [...names(), name] : names().filter((each) => each !== name));
      this.#changed();
    });
    return element("label", { class: "check" }, box, label);
  }

  #tokens() {
    const most = this.settings.server.maxLogprobs;
    const input = element("input", { type: "number", id: "set-numAlternatives", min: 0, max: most < 0 ? null : most });
    input.value = this.settings.values.numAlternatives;
    input.addEventListener("input", () => {
      if (!input.checkValidity() || input.value === "") return;
      this.settings.set("numAlternatives", Number(input.value));
      this.#changed();
    });
    return [this.#check("showsTokens", translate("settings.askTokens")), field(translate("settings.alternatives"), input)];
  }

  /** Returns a section for answers that are read aloud; none without a model that does. */
  #reading(voices) {
    const { server, values } = this.settings;
    if (server.speaker === null) return [];
    const names = new Set(values.voice === "" ? voices : [...voices, values.voice]);
    const choices = [["", translate("settings.asModel")], ...[...names].map((name) => [name, name])];
    return [section(translate("settings.reading"), values.voice !== "", this.#select("voice", translate("settings.voice"), choices))];
  }

  #offlineCopy() {
    const parts = offlineParts();
    return parts.length === 0 ? [] : [section(translate("offline.copy"), false, ...parts)];
  }

  #keeping() {
    if (!this.settings.server.keepsConversations) {
      return element("p", { text: translate("settings.keepsNothing") });
    }
    return this.#ownCheck("isOnServer", translate("settings.keepOnServer"));
  }
}

function section(title, isOpen, ...children) {
  return element("details", { class: "section", open: isOpen }, element("summary", { text: title }), ...children);
}

function labelOf({ type, server_label: label }) {
  if (type === "mcp") return translate("settings.offerMcp", { name: label });
  if (type === "web_search") return translate("settings.offerWebSearch");
  if (type === PYTHON) return translate("settings.offerPython");
  return translate("settings.offerOther", { name: type });
}

function placeholderOf(standard) {
  return standard === undefined || standard === null ? translate("settings.notSet") : String(standard);
}

function isSlidable({ isInteger, minimum, maximum }) {
  return !isInteger && minimum !== null && maximum !== null && maximum <= MAX_SLIDER;
}

function sliderOf(name, { minimum, maximum }, value, standard) {
  const properties = { type: "range", min: Math.floor(minimum), max: maximum, step: 0.01, "aria-label": translate("settings.slider", { name }) };
  const slider = element("input", properties);
  slider.value = value || (standard ?? minimum);
  return slider;
}

/** Returns what a number does, and its range. */
function hintText(name, { minimum, maximum, excludesMinimum, excludesMaximum }) {
  const description = translate(`settings.number.${name}`);
  const ends = [
    minimum === null || Math.abs(minimum) > 1e9 ? "" : `${excludesMinimum ? ">" : "≥"} ${minimum}`,
    maximum === null || maximum > 1e9 ? "" : `${excludesMaximum ? "<" : "≤"} ${maximum}`,
  ];
  const range = ends.filter(Boolean).join(", ");
  return range ? translate("settings.range", { description, range: `${LEFT_TO_RIGHT}${range}${END}` }) : description;
}
