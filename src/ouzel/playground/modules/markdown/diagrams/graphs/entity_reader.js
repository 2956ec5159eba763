// The code of entities becomes entities with their attributes, and relations between them. Styles are left out.

import { TooLarge, Unreadable } from "../statements.js";

const MAX_ENTITIES = 100;
const MAX_ATTRIBUTES = 800;
const MAX_RELATIONS = 300;
const IGNORED = /^(?:classDef|class|style)\b/;
const NAME = '(?:"[^"]{1,100}"|[\\p{L}\\p{N}_]+(?:(?:\\.(?!\\.)|-(?!-))[\\p{L}\\p{N}_]+)*)';
const TITLE = '(?:\\["?([^\\]"]{1,200})"?\\])?';
const RELATION = new RegExp(`^(${NAME})\\s*(\\|o|\\|\\||\\}o|\\}\\|)(--|\\.\\.)(o\\||\\|\\||o\\{|\\|\\{)\\s*(${NAME})\\s*(?::\\s*(.*))?$`, "u");
const ENTITY = new RegExp(`^(${NAME})\\s*${TITLE}(?::::[\\w-]+)?\\s*(\\{)?\\s*(\\})?$`, "u");
const ATTRIBUTE = /^(?:([^\s"(]{1,100}(?:\([^()"]{0,100}\)\S{0,20})?)\s+)?([^\s"]{1,100}?)(?:\s+((?:PK|FK|UK)(?:\s*,\s*(?:PK|FK|UK))*))?(?:\s+"([^"]{0,200})")?\s*,?$/;
const DIRECTION = /^direction\s+(TD|TB|BT|LR|RL)$/;
const SIGNS = { "|o": "zero-or-one", "o|": "zero-or-one", "||": "one", "}o": "zero-or-many", "o{": "zero-or-many", "}|": "many", "|{": "many" };

/** Returns `{ direction, entities, relations }`; entities are a map by their names. */
export function readEntities([first, ...rest]) {
  if (!/^erDiagram;?$/.test(first.text)) throw new Unreadable(first.line);
  const diagram = { direction: "TB", entities: new Map(), relations: [], numAttributes: 0, open: null };
  for (const { text, line } of rest) {
    if (!take(text, diagram)) throw new Unreadable(line);
    if (diagram.entities.size > MAX_ENTITIES || diagram.numAttributes > MAX_ATTRIBUTES || diagram.relations.length > MAX_RELATIONS) throw new TooLarge();
  }
  if (diagram.entities.size === 0) throw new Unreadable(first.line);
  return diagram;
}

/** Tells whether the statement could be read. */
function take(text, diagram) {
  if (diagram.open !== null) return takeInside(text, diagram);
  if (IGNORED.test(text)) return true;
  const direction = DIRECTION.exec(text);
  if (direction !== null) diagram.direction = direction[1];
  return direction !== null || takeRelation(text, diagram) || takeEntity(text, diagram);
}

function takeInside(text, diagram) {
  if (text === "}") {
    diagram.open = null;
    return true;
  }
  const found = ATTRIBUTE.exec(text);
  if (found === null) return false;
  const [, type = "", name, keys = "", comment = ""] = found;
  diagram.open.attributes.push({ type, name, keys: keys.replace(/\s+/g, "").replaceAll(",", ", "), comment });
  diagram.numAttributes += 1;
  return true;
}

function takeRelation(text, diagram) {
  const found = RELATION.exec(text);
  if (found === null) return false;
  const [, from, start, line, end, to, words] = found;
  const ids = { from: find(from, diagram).id, to: find(to, diagram).id };
  diagram.relations.push({ ...ids, kind: line === ".." ? "dotted" : "plain", start: SIGNS[start], end: SIGNS[end], text: words?.trim() ?? "" });
  return true;
}

function takeEntity(text, diagram) {
  const found = ENTITY.exec(text);
  if (found === null) return false;
  const entity = find(found[1], diagram);
  if (found[2] !== undefined) entity.title = found[2];
  if (found[3] !== undefined && found[4] === undefined) diagram.open = entity;
  return true;
}

function find(written, { entities }) {
  const id = written.replace(/^"(.*)"$/, "$1");
  if (!entities.has(id)) entities.set(id, { id, title: id, attributes: [] });
  return entities.get(id);
}
