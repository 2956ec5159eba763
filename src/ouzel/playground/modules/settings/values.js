// What can be set for a conversation: a frozen record. What is empty is left to the model.

import { isObject } from "../objects.js";

/** The numbers among a request's fields that can be set, by their names there. */
export const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "max_tokens", "thinking_token_budget", "seed"];
/** Longer texts are not taken. */
export const MAX_TEXT = 1_000_000; // characters
const MAX_NAME = 500;
const MAX_ENTRIES = 100;
/** The values of a conversation for which nothing has been set. */
export const UNSET = frozen({
  model: "",
  system: "",
  numbers: {}, // texts, as they were typed
  stop: "",
  reasoning: "",
  hasSchema: false,
  schema: "",
  showsTokens: false,
  numAlternatives: 5,
  builtinTools: [],
  runsBuiltinTools: true,
  hostedTools: [], // names of tools that the server runs
  mcpServers: [], // servers of one's own: a label, a URL, and whether they are used
  asksForApproval: true,
  collection: "", // the id of the vector store that is searched
  tools: "",
  voice: "", // in which answers are read aloud
});
const REASONING = ["", "on", "off"];
const READERS = {
  numbers: (value) => isObject(value) && Object.entries(value).every(([name, text]) => NUMBERS.includes(name) && isText(text, MAX_NAME)),
  reasoning: (value) => REASONING.includes(value),
  numAlternatives: (value) => Number.isInteger(value) && value >= 0,
  builtinTools: isListOfNames,
  hostedTools: isListOfNames,
  mcpServers: (value) => isList(value) && value.every(isMcpServer),
};

/** Returns a record that cannot be changed. */
export function frozen(values) {
  return Object.freeze({ ...values, numbers: Object.freeze({ ...values.numbers }) });
}

/**
 * Reads values that a file, a server or an earlier page had. Returns them as a record, and the names of entries that are
 * not known or have no sense. Values that somebody else may have written give no server a call that nobody has seen.
 */
export function readValues(object, { isForeign = false } = {}) {
  if (!isObject(object)) return { values: UNSET, refused: [] };
  const entries = Object.entries(object);
  const refused = entries.filter(([name, value]) => !isRight(name, value)).map(([name]) => name);
  const values = { ...UNSET, ...Object.fromEntries(entries.filter(([name]) => !refused.includes(name))) };
  return { values: frozen(isForeign ? { ...values, mcpServers: [], asksForApproval: true } : values), refused };
}

/** Returns the values that are set, alone. */
export function setValues(values) {
  const isSet = ([name, value]) => JSON.stringify(value) !== JSON.stringify(UNSET[name]);
  return Object.fromEntries(Object.entries(values).filter(isSet));
}

function isRight(name, value) {
  if (!Object.hasOwn(UNSET, name)) return false;
  if (Object.hasOwn(READERS, name)) return READERS[name](value);
  return typeof value === typeof UNSET[name] && (typeof value !== "string" || value.length <= MAX_TEXT);
}

function isMcpServer(value) {
  return isObject(value) && isText(value.label, 64) && isText(value.url, MAX_NAME) && typeof value.isUsed === "boolean" && Object.keys(value).length === 3;
}

function isListOfNames(value) {
  return isList(value) && value.every((name) => isText(name, MAX_NAME));
}

function isList(value) {
  return Array.isArray(value) && value.length <= MAX_ENTRIES;
}

function isText(value, maxLength) {
  return typeof value === "string" && value.length <= maxLength;
}
