// Holds a value against a JSON schema (draft 2020-12). Keywords that are not known here are named, not passed over.

import { isObject } from "./objects.js";
import { LANGUAGE, translate } from "./texts/texts.js";

const ANNOTATIONS = new Set(["$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly", "strict"]);
const TYPES = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  string: (value) => typeof value === "string",
  array: (value) => Array.isArray(value),
  object: isObject,
};
const MAX_DEPTH = 200;
const alternatives = new Intl.ListFormat(LANGUAGE, { type: "disjunction" });

/** Returns what is wrong, as "$.a[0]: must be a string", and the keywords that were not checked. */
export function checkAgainst(schema, value) {
  const check = new Check(schema);
  check.visit(schema, value, "$", 0);
  return { faults: check.faults, unchecked: [...check.unchecked] };
}

class Check {
  faults = [];
  unchecked = new Set();

  constructor(root) {
    this.root = root;
  }

  visit(schema, value, path, depth) {
    if (schema === true) return;
    if (schema === false || depth > MAX_DEPTH) return void this.#fault(path, translate("schema.nothingAllowed"));
    for (const [keyword, wanted] of Object.entries(schema)) {
      if (Object.hasOwn(KEYWORDS, keyword)) KEYWORDS[keyword].call(this, wanted, value, path, depth + 1, schema);
      else if (!ANNOTATIONS.has(keyword)) this.unchecked.add(keyword);
    }
  }

  allows(schema, value, path, depth) {
    const inner = new Check(this.root);
    inner.visit(schema, value, path, depth);
    for (const keyword of inner.unchecked) this.unchecked.add(keyword);
    return inner.faults.length === 0;
  }

  expect(isRight, path, message) {
    if (!isRight) this.#fault(path, message);
  }

  /** Returns null for an expression that other languages know and this one does not. */
  compiled(pattern) {
    try {
      return new RegExp(pattern, "u");
    } catch {
      this.unchecked.add(`pattern ${pattern}`);
      return null;
    }
  }

  #fault(path, message) {
    this.faults.push(`${path}: ${message}`);
  }
}

const KEYWORDS = {
  $ref(pointer, value, path, depth) {
    const target = resolved(this.root, pointer);
    if (target === undefined) this.unchecked.add(`$ref ${pointer}`);
    else this.visit(target, value, path, depth);
  },
  type(wanted, value, path) {
    const names = [wanted].flat();
    this.expect(names.some((name) => TYPES[name]?.(value)), path, translate("schema.type", { types: alternatives.format(names) }));
  },
  enum(values, value, path) {
    this.expect(values.some((each) => isSame(each, value)), path, translate("schema.oneOf", { values: JSON.stringify(values) }));
  },
  const(wanted, value, path) {
    this.expect(isSame(wanted, value), path, translate("schema.const", { value: JSON.stringify(wanted) }));
  },
  properties(schemas, value, path, depth) {
    if (!isObject(value)) return;
    for (const [name, schema] of Object.entries(schemas)) {
      if (Object.hasOwn(value, name)) this.visit(schema, value[name], `${path}.${name}`, depth);
    }
  },
  required(names, value, path) {
    if (isObject(value)) names.forEach((name) => this.expect(Object.hasOwn(value, name), path, translate("schema.needs", { name })));
  },
  additionalProperties(schema, value, path, depth, around) {
    if (!isObject(value)) return;
    const patterns = Object.keys(around.patternProperties ?? {}).map((pattern) => this.compiled(pattern));
    if (patterns.includes(null)) return;
    const others = Object.keys(value).filter((name) => !Object.hasOwn(around.properties ?? {}, name));
    for (const name of others.filter((each) => !patterns.some((pattern) => pattern.test(each)))) {
      this.visit(schema, value[name], `${path}.${name}`, depth);
    }
  },
  patternProperties(schemas, value, path, depth) {
    if (!isObject(value)) return;
    for (const [pattern, schema] of Object.entries(schemas)) {
      const names = Object.keys(value).filter((name) => this.compiled(pattern)?.test(name));
      names.forEach((name) => this.visit(schema, value[name], `${path}.${name}`, depth));
    }
  },
  prefixItems(schemas, value, path, depth) {
    if (!Array.isArray(value)) return;
    value.slice(0, schemas.length).forEach((item, index) => this.visit(schemas[index], item, `${path}[${index}]`, depth));
  },
  items(schema, value, path, depth, around) {
    if (!Array.isArray(value)) return;
    const start = around.prefixItems?.length ?? 0;
    value.slice(start).forEach((item, index) => this.visit(schema, item, `${path}[${start + index}]`, depth));
  },
  anyOf(schemas, value, path, depth) {
    const isRight = schemas.some((schema) => this.allows(schema, value, path, depth));
    this.expect(isRight, path, translate("schema.noAlternative"));
  },
  oneOf(schemas, value, path, depth) {
    const count = schemas.filter((schema) => this.allows(schema, value, path, depth)).length;
    this.expect(count === 1, path, translate("schema.oneAlternative", { number: count }));
  },
  allOf(schemas, value, path, depth) {
    schemas.forEach((schema) => this.visit(schema, value, path, depth));
  },
  not(schema, value, path, depth) {
    this.expect(!this.allows(schema, value, path, depth), path, translate("schema.not"));
  },
  pattern(pattern, value, path) {
    if (typeof value === "string") this.expect(this.compiled(pattern)?.test(value) ?? true, path, translate("schema.pattern", { pattern }));
  },
  ...bounds("minLength", "maxLength", (value) => (typeof value === "string" ? [...value].length : null), "schema.characters"),
  ...bounds("minItems", "maxItems", (value) => (Array.isArray(value) ? value.length : null), "schema.items"),
  ...bounds("minProperties", "maxProperties", (value) => (isObject(value) ? Object.keys(value).length : null), "schema.keys"),
  ...bounds("minimum", "maximum", (value) => (typeof value === "number" ? value : null), "schema.range"),
  exclusiveMinimum(limit, value, path) {
    if (typeof value === "number") this.expect(value > limit, path, translate("schema.range", { limit: `> ${limit}` }));
  },
  exclusiveMaximum(limit, value, path) {
    if (typeof value === "number") this.expect(value < limit, path, translate("schema.range", { limit: `< ${limit}` }));
  },
  multipleOf(step, value, path) {
    if (typeof value === "number") this.expect(isWhole(value / step), path, translate("schema.multipleOf", { step: String(step) }));
  },
  uniqueItems(isWanted, value, path) {
    if (!isWanted || !Array.isArray(value)) return;
    const isUnique = value.every((item, index) => !value.slice(0, index).some((each) => isSame(each, item)));
    this.expect(isUnique, path, translate("schema.twice"));
  },
};

/** Returns the two keywords of a range; `sizeOf` returns null for values that have no such size. */
function bounds(minimum, maximum, sizeOf, key) {
  const words = (sign, limit) => translate(key, { limit: `${sign} ${limit}` });
  return {
    [minimum](limit, value, path) {
      const size = sizeOf(value);
      if (size !== null) this.expect(size >= limit, path, words(">=", limit));
    },
    [maximum](limit, value, path) {
      const size = sizeOf(value);
      if (size !== null) this.expect(size <= limit, path, words("<=", limit));
    },
  };
}

function resolved(root, pointer) {
  if (pointer === "#") return root;
  if (!pointer.startsWith("#/")) return undefined;
  const names = pointer.slice(2).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce((schema, name) => schema?.[name], root);
}

/** Says whether a quotient is whole, but for what binary fractions cannot hold: 0.07 is a multiple of 0.01. */
function isWhole(quotient) {
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * 4 * Number.EPSILON;
}

function isSame(one, other) {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}
