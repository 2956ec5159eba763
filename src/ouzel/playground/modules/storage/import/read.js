// Values of files that somebody else may have written: each is of the type that is needed, or has another in its place.

import { isObject } from "../../objects.js";
import { frozen, MAX_TEXT, UNSET } from "../../settings/values.js";

const MAX_DEPTH = 32; // of objects that are kept as they are
const DATA_URL = /^data:[a-z]+\/[\w.+-]+(;[\w.+=-]+)*;base64,/i;

export function textOf(value) {
  return typeof value === "string" ? value.toWellFormed() : "";
}

export function listOf(value) {
  return Array.isArray(value) ? value : [];
}

/** Returns an object's own value of a name; undefined where it has none or is no object. */
export function valueOf(object, name) {
  return isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Returns a time in milliseconds, of a number of seconds to nanoseconds or of a text; null where it is no time. */
export function timeOf(value) {
  if (typeof value === "string") return inPast(Date.parse(value));
  if (typeof value !== "number" || !(value > 0) || !Number.isFinite(value)) return null;
  let time = value;
  if (time < 1e11) time *= 1000;
  while (time >= 1e14) time /= 1000;
  return inPast(Math.round(time));
}

function inPast(time) {
  return Number.isFinite(time) && time >= 0 ? Math.min(time, Date.now()) : null;
}

/** Tells whether an address holds a file itself: nothing is fetched from elsewhere. */
export function isDataUrl(value) {
  return typeof value === "string" && DATA_URL.test(value.slice(0, 200));
}

/** Returns the settings of a conversation that has instructions for the model; nothing where there are none. */
export function systemSettings(texts) {
  const system = [...new Set(texts.map((text) => text.trim()))].filter(Boolean).join("\n\n");
  return system === "" ? {} : { settings: frozen({ ...UNSET, system: system.slice(0, MAX_TEXT).toWellFormed() }) };
}

/** Returns a copy of JSON, without what lies deeper than the page ever writes. */
export function copyOf(value, depth = 0) {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.map((each) => copyOf(each, depth + 1));
  const entries = Object.entries(value).filter(([name]) => name !== "__proto__");
  return Object.fromEntries(entries.map(([name, each]) => [name, copyOf(each, depth + 1)]));
}
