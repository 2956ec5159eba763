// What is set for the conversation that is shown. Each conversation owns its values.

import { translate } from "../texts/texts.js";
import { BUILTIN_NAMES, builtinDefinitions } from "../tools/builtin.js";
import { mcpKey } from "./mcp_keys.js";
import { Standard } from "./standard.js";
import { NUMBERS, UNSET, frozen } from "./values.js";

export class Settings {
  #conversation;

  /** `standard` is what this browser keeps of settings. */
  constructor(server, standard = new Standard(), conversation = { settings: null }) {
    Object.assign(this, { server, standard });
    this.look(conversation);
  }

  /** Makes these the settings of a conversation; a new one gets the values that the browser has for it. */
  look(conversation) {
    conversation.settings ??= frozen(this.standard.values);
    this.#conversation = conversation;
  }

  /** Returns the settings of a conversation that may be another one than is shown. */
  of(conversation) {
    return Object.assign(new Settings(this.server, this.standard, conversation), { onKeep: this.onKeep });
  }

  /** Returns the same settings with another model. */
  withModel(model) {
    return new Settings(this.server, this.standard, { settings: frozen({ ...this.values, model }) });
  }

  /** Is called with a conversation whose values have changed. */
  onKeep = () => {};

  get conversation() {
    return this.#conversation;
  }

  get values() {
    return this.#conversation.settings;
  }

  set(name, value) {
    this.take({ ...this.values, [name]: value });
  }

  setNumber(name, text) {
    const { [name]: before, ...numbers } = this.values.numbers;
    this.set("numbers", text === "" ? numbers : { ...numbers, [name]: text });
  }

  /** Sets all values. */
  take(values) {
    this.#conversation.settings = frozen(values);
    this.standard.note(this.values);
    this.onKeep(this.#conversation);
  }

  /** Sets all values of this conversation, and leaves those with which others begin. */
  takeOnce(values) {
    this.#conversation.settings = frozen(values);
    this.onKeep(this.#conversation);
  }

  reset() {
    this.take({ ...UNSET, model: this.values.model });
  }

  get model() {
    return this.server.model(this.values.model);
  }

  get keepsOnServer() {
    return this.server.keepsConversations && this.standard.own.isOnServer;
  }

  /** Returns what is wrong with the settings, a line for each; nothing is sent then. */
  get faults() {
    const numbers = NUMBERS.map((name) => this.faultOf(name, this.values.numbers[name] ?? ""));
    return [...numbers, this.schemaFault, this.toolsFault].filter(Boolean);
  }

  get schemaFault() {
    return faultOf(() => this.schema, translate("settings.schema"));
  }

  get toolsFault() {
    return faultOf(() => this.tools, translate("settings.tools"));
  }

  /** Returns what is wrong with a number, which is empty where it is not set; else nothing. */
  faultOf(name, text) {
    if (text === "") return "";
    const field = this.server.field(name);
    const number = Number(text);
    if (!Number.isFinite(number) || (field?.isInteger && !Number.isInteger(number))) {
      return translate(field?.isInteger ? "settings.mustBeWhole" : "settings.mustBeNumber", { name, value: text });
    }
    if (field?.isInteger && !Number.isSafeInteger(number)) return translate("settings.tooManyDigits", { name, value: text });
    if (field === null) return ""; // it was held against its range when it was set
    const { minimum, maximum, excludesMinimum, excludesMaximum } = field;
    if (minimum !== null && (excludesMinimum ? number <= minimum : number < minimum)) {
      return translate("settings.outOfRange", { name, limit: `${excludesMinimum ? ">" : ">="} ${minimum}`, value: text });
    }
    if (maximum !== null && (excludesMaximum ? number >= maximum : number > maximum)) {
      return translate("settings.outOfRange", { name, limit: `${excludesMaximum ? "<" : "<="} ${maximum}`, value: text });
    }
    return "";
  }

  /** Returns the sampling parameters as a request has them. */
  get parameters() {
    const { numbers, stop, reasoning } = this.values;
    const parameters = Object.fromEntries(Object.entries(numbers).map(([name, text]) => [name, Number(text)]));
    const texts = stop.split("\n").filter((line) => line !== "");
    if (texts.length > 0) parameters.stop = texts;
    if (reasoning !== "") parameters.enable_thinking = reasoning === "on";
    return parameters;
  }

  /** Returns null where the answer may have any form. Throws where the text is no JSON object. */
  get schema() {
    if (!this.values.hasSchema) return null;
    const schema = JSON.parse(this.values.schema);
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) throw new Error(translate("settings.mustBeObject"));
    return schema;
  }

  /** Returns the definitions of all tools that are offered. Throws where those of one's own are not a list of them. */
  get tools() {
    const own = this.values.tools.trim() ? [JSON.parse(this.values.tools)].flat() : [];
    return [...builtinDefinitions(this.values.builtinTools), ...own.map(toDefinition)];
  }

  /** Chooses one more of the tools that the server runs. */
  turnOn(name) {
    this.set("hostedTools", [...this.values.hostedTools, name]);
  }

  /** Returns the entries, as requests have them, of the chosen tools that the server runs. */
  get hostedEntries() {
    const { collection } = this.values;
    const search = this.server.searchesFiles && collection !== "" ? [{ type: "file_search", vector_store_ids: [collection] }] : [];
    const approval = this.values.asksForApproval ? "always" : "never";
    const chosen = this.server.hostedTools.filter(({ name }) => this.values.hostedTools.includes(name));
    const entries = chosen.map(({ entry }) => (entry.type === "mcp" ? { ...entry, require_approval: approval } : entry));
    return [...entries, ...this.#ownMcpEntries(approval), ...search];
  }

  #ownMcpEntries(approval) {
    if (!this.server.takesMcpUrls) return [];
    return this.values.mcpServers.filter(({ isUsed }) => isUsed).map(({ label, url }) => {
      const key = mcpKey(url);
      return { type: "mcp", server_label: label, server_url: url, ...(key ? { authorization: key } : {}), require_approval: approval };
    });
  }

  get topLogprobs() {
    return this.values.showsTokens ? this.values.numAlternatives : null;
  }
}

/** A tool may be given whole, or as the function alone. */
function toDefinition(tool) {
  const definition = tool?.type === "function" ? tool : { type: "function", function: tool };
  const name = definition.function?.name;
  if (typeof name !== "string" || !/^[\w-]{1,64}$/.test(name)) {
    throw new Error(translate("settings.toolName"));
  }
  if (BUILTIN_NAMES.includes(name)) throw new Error(translate("settings.toolBuiltin", { name }));
  return definition;
}

function faultOf(read, name) {
  try {
    read();
    return "";
  } catch (error) {
    return translate("settings.faultIn", { name, fault: error.message });
  }
}
