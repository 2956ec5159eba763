// What a value of JSON is.

/** Tells whether a value has names and values: it is neither a list nor null. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
