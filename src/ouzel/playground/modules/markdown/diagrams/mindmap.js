// Mind maps: a tree whose branches go to the right and to the left of its root. Indentation makes the tree.

import { boxShape, sizeFor } from "./graphs/shapes.js";
import { BOLD, drawing, linesOf, measure, round, shape, titleBlock } from "./svg.js";
import { TooLarge, Unreadable } from "./statements.js";

const MAX_NODES = 200;
const MAX_DEPTH = 12;
const MAX_LINE = 32; // characters
const MARGIN = 14;
const GAP_X = 40;
const GAP_Y = 12;
const NUM_TONES = 8;
// Longer marks stand before their beginnings.
const SHAPES = [["((", "))", "circle"], ["))", "((", "stadium"], [")", "(", "stadium"], ["{{", "}}", "hexagon"], ["[", "]", "box"], ["(", ")", "round"]];

export function draw(statements, { name, title }) {
  const root = read(statements);
  const [right, left] = divide(root.children);
  for (const [index, child] of [...right, ...left].entries()) paint(child, index % NUM_TONES);
  const height = Math.max(root.height, heightFor(right), heightFor(left));
  place(root, 0, 0);
  placeBranches(right, { x: root.width / 2, y: 0, sign: 1 });
  placeBranches(left, { x: -root.width / 2, y: 0, sign: -1 });
  const nodes = listNodes(root);
  const start = Math.min(...nodes.map(({ x, width }) => x - width / 2));
  const width = Math.max(...nodes.map((node) => node.x + node.width / 2)) - start + 2 * MARGIN;
  const head = titleBlock(title, width);
  const move = `translate(${round(MARGIN - start + (head.width - width) / 2)} ${round(head.height + MARGIN + height / 2)})`;
  const drawn = shape("g", { transform: move }, ...nodes.flatMap(drawBranches), ...nodes.map(drawNode));
  return drawing(head.width, head.height + height + 2 * MARGIN, name, ...head.nodes, drawn);
}

function read([first, ...rest]) {
  if (first.text !== "mindmap") throw new Unreadable(first.line);
  const path = []; // from the root to the newest node
  let root = null;
  let numNodes = 0;
  for (const { text, line, indent } of rest) {
    if (/^:::?[\w\s-]/.test(text) || text.startsWith("::icon(")) continue; // classes and icons
    while (path.length > 0 && path.at(-1).indent >= indent) path.pop();
    const node = { ...makeNode(text, path.length), indent, children: [], tone: null };
    if (path.length === 0 && root !== null) throw new Unreadable(line); // there is one root
    root ??= node;
    path.at(-1)?.children.push(node);
    path.push(node);
    numNodes += 1;
    if (numNodes > MAX_NODES || path.length > MAX_DEPTH) throw new TooLarge();
  }
  if (root === null) throw new Unreadable(first.line);
  return root;
}

function makeNode(written, depth) {
  const { text, kind } = readShape(written.replace(/:::[\w\s-]+$/, "").replace(/::icon\([^)]*\)$/, "").replace(/\*\*([^*]+)\*\*/g, "$1").trim());
  const lines = linesOf(text, MAX_LINE);
  const { width, height } = measure(lines);
  return { lines, kind, depth, ...sizeFor(kind, { width: depth === 0 ? width * BOLD : width, height }) };
}

function readShape(written) {
  const id = /^[\p{L}\p{N}_.-]*/u.exec(written)[0];
  const rest = written.slice(id.length);
  for (const [open, close, kind] of SHAPES) {
    const isWhole = rest.startsWith(open) && rest.endsWith(close) && rest.length > open.length + close.length;
    if (isWhole) return { kind, text: rest.slice(open.length, -close.length) };
  }
  return { kind: "round", text: written };
}

/** The first branches go to the right, so many that both sides are about as high. */
function divide(children) {
  const total = heightFor(children);
  let numRight = 0;
  while (numRight < children.length && heightFor(children.slice(0, numRight)) < total / 2) numRight += 1;
  return children.length < 3 ? [children, []] : [children.slice(0, numRight), children.slice(numRight)];
}

function heightFor(children) {
  return children.reduce((sum, child) => sum + treeHeight(child), 0) + GAP_Y * Math.max(children.length - 1, 0);
}

function treeHeight(node) {
  node.tall ??= Math.max(node.height, heightFor(node.children));
  return node.tall;
}

function placeBranches(children, { x, y, sign }) {
  let top = y - heightFor(children) / 2;
  for (const child of children) {
    const tall = treeHeight(child);
    place(child, x + sign * (GAP_X + child.width / 2), top + tall / 2);
    placeBranches(child.children, { x: x + sign * (GAP_X + child.width), y: top + tall / 2, sign });
    top += tall + GAP_Y;
  }
}

function place(node, x, y) {
  node.x = x;
  node.y = y;
}

function paint(node, tone) {
  node.tone = tone;
  for (const child of node.children) paint(child, tone);
}

function listNodes(node) {
  return [node, ...node.children.flatMap(listNodes)];
}

function drawBranches({ x, y, width, children, depth }) {
  return children.map((child) => {
    const sign = Math.sign(child.x - x);
    const [from, to] = [x + (sign * width) / 2, child.x - (sign * child.width) / 2];
    const middle = round((from + to) / 2);
    return shape("path", { d: `M${round(from)} ${round(y)}C${middle} ${round(y)} ${middle} ${round(child.y)} ${round(to)} ${round(child.y)}`, class: `branch tone-${child.tone}`, "stroke-width": Math.max(4 - depth, 1.5) });
  });
}

function drawNode(node) {
  return shape("g", { class: node.tone === null ? "root" : `toned tone-${node.tone}` }, ...boxShape(node, node));
}
