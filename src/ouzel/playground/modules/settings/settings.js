// What a person has set for the chats of this browser. It stays in the browser; what is empty is left to the model.

import { KeptText } from "../storage/kept_text.js";
import { BUILTIN_NAMES, builtinDefinitions } from "../tools/builtin.js";

const kept = new KeptText("localStorage", "ouzel.settings");
/** The numbers among a request's fields that can be set, by their names there. */
export const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "max_tokens", "thinking_token_budget", "seed"];
const UNSET = {
  model: "",
  system: "",
  numbers: {},
  stop: "",
  reasoning: "",
  hasSchema: false,
  schema: "",
  showsTokens: false,
  numAlternatives: 5,
  builtinTools: [],
  runsBuiltinTools: true,
  hostedTools: [], // names of tools that the server runs
  asksForApproval: true,
  collection: "", // the id of the vector store that is searched
  tools: "",
  isOnServer: true,
  makesTitles: true, // by the model, in the background
};

export class Settings {
  constructor(server) {
    this.server = server;
    this.values = { ...structuredClone(UNSET), ...stored() };
  }

  set(name, value) {
    this.values[name] = value;
    this.#keep();
  }

  setNumber(name, text) {
    if (text === "") delete this.values.numbers[name];
    else this.values.numbers[name] = text;
    this.#keep();
  }

  reset() {
    const { model, isOnServer, makesTitles } = this.values;
    this.values = { ...structuredClone(UNSET), model, isOnServer, makesTitles };
    this.#keep();
  }

  get model() {
    return this.server.model(this.values.model);
  }

  get keepsOnServer() {
    return this.server.keepsConversations && this.values.isOnServer;
  }

  /** Returns what is wrong with the settings, a line for each; nothing is sent then. */
  get faults() {
    const numbers = NUMBERS.map((name) => this.faultOf(name, this.values.numbers[name] ?? ""));
    return [...numbers, faultOf(() => this.schema, "Schema"), faultOf(() => this.tools, "Tools")].filter(Boolean);
  }

  /** Returns what is wrong with a number, which is empty where it is not set; else nothing. */
  faultOf(name, text) {
    if (text === "") return "";
    const field = this.server.field(name);
    const number = Number(text);
    if (!Number.isFinite(number) || (field?.isInteger && !Number.isInteger(number))) {
      return `${name} must be ${field?.isInteger ? "a whole number" : "a number"}, given ${text}`;
    }
    if (field?.isInteger && !Number.isSafeInteger(number)) return `${name} must have fewer digits: a browser cannot hold ${text}`;
    if (field === null) return ""; // it was held against its range when it was set
    const { minimum, maximum, excludesMinimum, excludesMaximum } = field;
    if (minimum !== null && (excludesMinimum ? number <= minimum : number < minimum)) {
      return `${name} must be ${excludesMinimum ? ">" : ">="} ${minimum}, given ${text}`;
    }
    if (maximum !== null && (excludesMaximum ? number >= maximum : number > maximum)) {
      return `${name} must be ${excludesMaximum ? "<" : "<="} ${maximum}, given ${text}`;
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
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) throw new Error("must be a JSON object");
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
    return [...entries, ...search];
  }

  get topLogprobs() {
    return this.values.showsTokens ? this.values.numAlternatives : null;
  }

  #keep() {
    kept.value = JSON.stringify(this.values);
  }
}

/** A tool may be given whole, or as the function alone. */
function toDefinition(tool) {
  const definition = tool?.type === "function" ? tool : { type: "function", function: tool };
  const name = definition.function?.name;
  if (typeof name !== "string" || !/^[\w-]{1,64}$/.test(name)) {
    throw new Error("each must have a name of at most 64 letters, digits, - and _");
  }
  if (BUILTIN_NAMES.includes(name)) throw new Error(`${name} is the name of a built-in tool`);
  return definition;
}

function faultOf(read, what) {
  try {
    read();
    return "";
  } catch (error) {
    return `${what}: ${error.message}`;
  }
}

function stored() {
  try {
    return JSON.parse(kept.value || "{}");
  } catch {
    return {};
  }
}
