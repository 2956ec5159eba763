// The code of a flowchart becomes nodes, edges and groups. Styles, classes and links of nodes are left out.

import { TooLarge, Unreadable } from "../statements.js";

const MAX_NODES = 150;
const MAX_EDGES = 300;
const MAX_GROUPS = 40;
const HEAD = /^(?:graph|flowchart)(?:-elk)?(?:\s+(TD|TB|BT|LR|RL))?\s*;?$/;
const IGNORED = /^(?:classDef|class|style|linkStyle|click|direction)\b/;
const GROUP = /^subgraph(?:\s+(.*))?$/;
const ID = /[\p{L}\p{N}_]+(?:[-.][\p{L}\p{N}_]+)*/uy;
const CLASS = /:::[\w-]+/y;
// Longer marks stand before their beginnings.
const SHAPES = [
  ["(((", ")))", "double-circle"], ["((", "))", "circle"], ["([", "])", "stadium"], ["[[", "]]", "subroutine"],
  ["[(", ")]", "cylinder"], ["[/", "/]", "lean-right"], ["[/", "\\]", "trapezoid"], ["[\\", "\\]", "lean-left"],
  ["[\\", "/]", "trapezoid-down"], ["{{", "}}", "hexagon"], ["[", "]", "box"], ["(", ")", "round"], ["{", "}", "diamond"], [">", "]", "flag"],
];
const LINE = /(<|[ox](?=--|==|-\.))?(?:(?<invisible>~{3,})|(?<thick>={2,})|(?<dotted>-\.+-)|(?<plain>-{2,}))(>|[ox](?=\s|\||$))?/y;
const LABELLED = [
  [/(<)?==\s*([^=\s>][^=]{0,300}?)\s*={2,}(>|[ox](?=\s|$))?/y, "thick"],
  [/(<)?-\.\s*([^-.\s>][^\n]{0,300}?)\s*\.+-(>|[ox](?=\s|$))?/y, "dotted"],
  [/(<)?--\s*("[^"\n]{0,300}"|[^-\s>](?:[^-\n]|-(?!-)){0,300}?)\s*-{2,}(>|[ox](?=\s|$))?/y, "plain"],
];
const TEXT = /\|\s*("[^"\n]{0,300}"|[^|\n]{0,300}?)\s*\|/y;

/** Returns `{ direction, nodes, edges, groups }`; nodes and groups are maps by their ids. */
export function readFlowchart(statements) {
  return new FlowchartReader().read(statements);
}

class FlowchartReader {
  #nodes = new Map();
  #edges = [];
  #groups = new Map();
  #openGroups = [];

  read([first, ...rest]) {
    const [head, ...behind] = first.text.split(";");
    const direction = HEAD.exec(head.trim());
    if (direction === null) throw new Unreadable(first.line);
    for (const { text, line } of [{ text: behind.join(";"), line: first.line }, ...rest]) {
      for (const statement of splitStatements(text)) this.#take(statement, line);
      if (this.#nodes.size > MAX_NODES || this.#edges.length > MAX_EDGES || this.#groups.size > MAX_GROUPS) throw new TooLarge();
    }
    if (this.#nodes.size === 0) throw new Unreadable(first.line);
    for (const id of this.#groups.keys()) this.#nodes.delete(id); // an edge may lead to a group
    this.#edges = this.#edges.filter(({ from, to }) => this.#nodes.has(from) && this.#nodes.has(to));
    return { direction: direction[1] ?? "TD", nodes: this.#nodes, edges: this.#edges, groups: this.#groups };
  }

  #take(statement, line) {
    const group = GROUP.exec(statement);
    if (IGNORED.test(statement)) return;
    if (statement === "end" && this.#openGroups.length > 0) this.#openGroups.pop();
    else if (group !== null) this.#openGroup(group[1] ?? "");
    else this.#readChain(statement, line);
  }

  #openGroup(text) {
    const titled = /^([\w-]+)\s*\[(.*)\]$/.exec(text.trim());
    const id = titled?.[1] ?? text.trim();
    this.#groups.set(id, { id, title: titled?.[2] ?? text, parent: this.#openGroups.at(-1) ?? null });
    this.#openGroups.push(id);
  }

  /** Reads nodes with links between: `A --> B & C -->|text| D`. */
  #readChain(text, line) {
    const at = { place: 0, text };
    let before = this.#readNodes(at, line);
    while (skipBlank(at)) {
      const link = readLink(at);
      if (link === null) throw new Unreadable(line);
      const after = this.#readNodes(at, line);
      for (const from of before) for (const to of after) this.#edges.push({ from, to, ...link });
      if (this.#edges.length > MAX_EDGES) throw new TooLarge();
      before = after;
    }
  }

  #readNodes(at, line) {
    const ids = [];
    do {
      skipBlank(at);
      ids.push(this.#readNode(at, line));
      skipBlank(at);
    } while (match(/&/y, at) !== null);
    return ids;
  }

  #readNode(at, line) {
    const id = match(ID, at)?.[0];
    if (id === undefined) throw new Unreadable(line);
    const node = this.#nodes.get(id) ?? { id, text: id, shape: "box", group: null };
    this.#nodes.set(id, node);
    node.group ??= this.#openGroups.at(-1) ?? null;
    const found = readShape(at);
    if (found !== null) Object.assign(node, found);
    match(CLASS, at);
    return id;
  }
}

function readShape(at) {
  for (const [open, close, shape] of SHAPES) {
    if (!at.text.startsWith(open, at.place)) continue;
    const start = at.place + open.length;
    const isQuoted = at.text[start] === '"';
    const textEnd = isQuoted ? at.text.indexOf('"', start + 1) + 1 : start;
    const end = at.text.indexOf(close, isQuoted && textEnd > 0 ? textEnd : start);
    if (end < 0) continue;
    at.place = end + close.length;
    return { shape, text: at.text.slice(start, end) };
  }
  return null;
}

function readLink(at) {
  for (const [pattern, kind] of LABELLED) {
    const found = match(pattern, at);
    if (found !== null) return { kind, text: found[2], start: found[1] ?? "", end: found[3] ?? "" };
  }
  const found = match(LINE, at);
  if (found === null) return null;
  const kind = Object.entries(found.groups).find(([, text]) => text !== undefined)[0];
  skipBlank(at);
  return { kind, text: match(TEXT, at)?.[1] ?? "", start: found[1] ?? "", end: found.at(-1) ?? "" };
}

/** Statements of one line stand between semicolons, which may also stand in texts. */
function splitStatements(text) {
  const pieces = text.match(/(?:"[^"]*"|#\w+;|[^;])+/g) ?? [];
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== "");
}

function match(pattern, at) {
  pattern.lastIndex = at.place;
  const found = pattern.exec(at.text);
  if (found !== null) at.place = pattern.lastIndex;
  return found;
}

function skipBlank(at) {
  while (at.text[at.place] === " " || at.text[at.place] === "\t") at.place += 1;
  return at.place < at.text.length;
}
