// The panel of settings: each number with the model's own default as its placeholder, and its range from the API.

import { button, element, field, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { BUILTIN_NAMES } from "../tools/builtin.js";
import { CollectionsField } from "./collections_field.js";
import { NUMBERS } from "./settings.js";

const MAX_SLIDER = 10; // a wider range is no slider
const SCHEMA_EXAMPLE = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}';
const TOOLS_EXAMPLE = '[{"name": "get_weather", "description": "…", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]';

export class SettingsPanel {
  /** `onChange` is called when something has been set; `attachedFiles` returns the files of this chat that can be searched. */
  constructor(container, settings, api, { onChange, attachedFiles }) {
    Object.assign(this, { container, settings, api, onChange });
    this.collections = new CollectionsField({ api, settings, attachedFiles, onChange });
  }

  /** Draws the panel for the chosen model, whose defaults are asked for. */
  async draw() {
    const { settings } = this;
    const { model } = settings;
    const [defaults] = await Promise.all([model.defaults(this.api).catch(() => ({})), settings.server.loadFields(this.api)]);
    if (settings.model !== model) return; // another one has been chosen meanwhile
    fill(
      this.container,
      this.#text("system", "System prompt", "The system message: text before all other messages.", 4),
      section("Sampling", true, ...NUMBERS.map((name) => this.#number(name, defaults[name])), this.#stop()),
      section("Reasoning", settings.values.reasoning !== "", this.#reasoning()),
      section("Structured output", settings.values.hasSchema, ...this.#schema()),
      section("Tools", settings.values.builtinTools.length > 0 || settings.values.tools !== "", ...this.#tools()),
      ...this.#hosted(),
      section("Tokens", settings.values.showsTokens, ...this.#tokens()),
      section("Conversations", false, this.#keeping(), this.#check("makesTitles", translate("settings.makesTitles"))),
      button("Set everything back", () => this.#reset(), { class: "quiet" }),
    );
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
    return element("div", {}, field(name.replaceAll("_", " "), controls, rangeText(described)), fault);
  }

  #text(name, label, hint, rows, { fault = null, ...properties } = {}) {
    const area = element("textarea", { id: `set-${name}`, rows, spellcheck: "false", ...properties });
    area.value = this.settings.values[name];
    area.addEventListener("input", () => {
      this.settings.set(name, area.value);
      this.#changed();
      if (fault) fault.textContent = this.settings.faults.find((line) => line.startsWith(fault.dataset.of)) ?? "";
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

  #select(name, label, choices, hint) {
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
    return this.#text("stop", "stop", "Texts that end the answer, one a line.", 2);
  }

  #reasoning() {
    const choices = [["", "As the model does"], ["on", "On"], ["off", "Off"]];
    const hint = this.settings.model.capabilities.has("reasoning") ? "" : "This model's chat template knows no reasoning.";
    return this.#select("reasoning", "Reasoning before the answer", choices, hint);
  }

  #schema() {
    const fault = element("small", { class: "fault", role: "alert", data: { of: "Schema" } });
    const hint = "A JSON schema. The answer is held to it while it is written, and checked here once more.";
    const area = this.#text("schema", "Schema", hint, 6, { fault, placeholder: SCHEMA_EXAMPLE });
    return [this.#check("hasSchema", "Answer in JSON by a schema"), area, fault];
  }

  /** Returns a section with the tools that the server runs; none without such tools. */
  #hosted() {
    const { server, values } = this.settings;
    const boxes = server.hostedTools.map(({ name, entry }) => this.#choice("hostedTools", `hosted-${name}`, name, `Offer ${labelOf(entry)}`));
    const hasMcp = server.hostedTools.some(({ entry }) => entry.type === "mcp");
    const approval = hasMcp ? this.#check("asksForApproval", "Ask before each call of an MCP server") : null;
    const search = server.searchesFiles ? this.collections.draw() : null;
    const parts = [...boxes, approval, search].filter((part) => part !== null);
    if (parts.length === 0) return [];
    return [section("Tools of the server", values.hostedTools.length > 0 || values.collection !== "", ...parts)];
  }

  #tools() {
    const fault = element("small", { class: "fault", role: "alert", data: { of: "Tools" } });
    const hint = "A list of functions in JSON; you type what they return.";
    const offered = BUILTIN_NAMES.map((name) => this.#builtin(name));
    const own = this.#text("tools", "Tools of your own", hint, 6, { fault, placeholder: TOOLS_EXAMPLE });
    return [...offered, this.#check("runsBuiltinTools", "Run these by themselves"), own, fault];
  }

  #builtin(name) {
    return this.#choice("builtinTools", `tool-${name}`, name, `Offer the ${name}`);
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
    return [this.#check("showsTokens", "Ask for the probability of each token"), field("Alternatives", input)];
  }

  #keeping() {
    if (!this.settings.server.keepsConversations) {
      return element("p", { text: "This server keeps no conversations: they stay in this browser." });
    }
    return this.#check("isOnServer", "Keep new conversations on the server");
  }
}

function section(title, isOpen, ...children) {
  return element("details", { class: "section", open: isOpen }, element("summary", { text: title }), ...children);
}

function labelOf({ type, server_label: label }) {
  if (type === "mcp") return `the MCP server ${label}`;
  return { web_search: "web search", code_interpreter: "Python in a sandbox" }[type] ?? type;
}

function placeholderOf(standard) {
  return standard === undefined || standard === null ? "not set" : String(standard);
}

function isSlidable({ isInteger, minimum, maximum }) {
  return !isInteger && minimum !== null && maximum !== null && maximum <= MAX_SLIDER;
}

function sliderOf(name, { minimum, maximum }, value, standard) {
  const properties = { type: "range", min: Math.floor(minimum), max: maximum, step: 0.01, "aria-label": `${name}, as a slider` };
  const slider = element("input", properties);
  slider.value = value || (standard ?? minimum);
  return slider;
}

function rangeText({ minimum, maximum, excludesMinimum, excludesMaximum, description }) {
  const said = description.replace(/ Default: .*/s, "");
  const ends = [
    minimum === null || Math.abs(minimum) > 1e9 ? "" : `${excludesMinimum ? ">" : "≥"} ${minimum}`,
    maximum === null || maximum > 1e9 ? "" : `${excludesMaximum ? "<" : "≤"} ${maximum}`,
  ];
  const range = ends.filter(Boolean).join(", ");
  return range ? `${said} (${range})` : said;
}
