// Parts of a drawing: nodes of SVG, built one by one. No text is ever read as SVG.

const NAMESPACE = "http://www.w3.org/2000/svg";
export const LINE_PX = 18;
const FONT = "14px system-ui, sans-serif";
const MAX_LINES = 12;
const MAX_LINE_LENGTH = 60; // characters
const TITLE_MARGIN = 12;
export const BOLD = 1.1; // how much wider bold texts are, at most
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const ENTITIES = { quot: '"', amp: "&", lt: "<", gt: ">", nbsp: " " };

/** Returns an element of SVG. `properties` are attributes. */
export function shape(tag, properties = {}, ...children) {
  const node = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(properties)) if (value !== null) node.setAttribute(name, typeof value === "number" ? round(value) : value);
  node.append(...children);
  return node;
}

/** Returns the whole drawing, as large as it is. */
export function drawing(width, height, label, ...children) {
  const size = { width: Math.ceil(width), height: Math.ceil(height) };
  return shape("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": label }, ...children);
}

/** Returns `{ nodes, width, height }` of a title above a drawing; the width is at least that of the drawing. */
export function titleBlock(title, width) {
  if (title === "") return { nodes: [], width, height: 0 };
  const lines = linesOf(title);
  const size = measure(lines);
  const wide = Math.max(width, size.width * BOLD + 2 * TITLE_MARGIN);
  return { nodes: [label(lines, wide / 2, TITLE_MARGIN + size.height / 2, { kind: "label title" })], width: wide, height: size.height + TITLE_MARGIN };
}

/** Returns the lines of a label, as a diagram's code writes it: with quotes, breaks and character codes. `length` is that of a line. */
export function linesOf(label, length = MAX_LINE_LENGTH) {
  const text = label.trim().replace(/^"(.*)"$/s, "$1").replace(/^`(.*)`$/s, "$1");
  const decoded = text.replace(/#(\w{1,8});/g, (written, name) => characterFor(name) ?? written);
  const lines = decoded.split(/<br\s*\/?>|\\n|\n/i).flatMap((line) => wrapped(line.trim(), length));
  return lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES - 1), "…"] : lines;
}

/** Returns the size of lines of text. */
export function measure(lines) {
  pen ??= Object.assign(document.createElement("canvas").getContext("2d"), { font: FONT });
  return { width: Math.max(0, ...lines.map((line) => pen.measureText(line).width)), height: lines.length * LINE_PX };
}

let pen = null;

/** Returns lines of text around a middle. */
export function label(lines, x, y, { kind = "label", anchor = "middle" } = {}) {
  const first = y - ((lines.length - 1) * LINE_PX) / 2;
  const spans = lines.map((line, index) => shape("tspan", { x, y: first + index * LINE_PX, dy: "0.35em" }, line));
  return shape("text", { class: kind, "text-anchor": anchor }, ...spans);
}

/** Returns the head of an arrow at a place; `dx` and `dy` are its direction. */
export function arrowHead(x, y, dx, dy, kind = ">") {
  if (kind === "o") return shape("circle", { cx: x - dx * 4, cy: y - dy * 4, r: 4, class: "head" });
  const [backX, backY] = [x - dx * 9, y - dy * 9];
  const [sideX, sideY] = [-dy * 5, dx * 5];
  if (kind === "x") {
    const cross = `M${round(backX + sideX)} ${round(backY + sideY)}L${round(x - sideX)} ${round(y - sideY)}M${round(backX - sideX)} ${round(backY - sideY)}L${round(x + sideX)} ${round(y + sideY)}`;
    return shape("path", { d: cross, class: "edge" });
  }
  const points = [x, y, backX + sideX, backY + sideY, backX - sideX, backY - sideY].map(round).join(" ");
  return shape("polygon", { points, class: "head" });
}

export function round(number) {
  return Math.round(number * 10) / 10;
}

function characterFor(name) {
  if (!/^\d+$/.test(name)) return ENTITIES[name] ?? null;
  const code = Number(name);
  return code >= 32 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : null;
}

function wrapped(line, length) {
  const lines = [];
  let current = "";
  for (const word of line.split(/\s+/).flatMap((each) => piecesOf(each, length))) {
    if (current !== "" && current.length + word.length >= length) {
      lines.push(current);
      current = "";
    }
    current = current === "" ? word : `${current} ${word}`;
  }
  return [...lines, current];
}

/** Long words are cut, and those of wide characters, which stand without blank, after half as many. */
function piecesOf(word, length) {
  const limit = WIDE.test(word) ? length / 2 : MAX_LINE_LENGTH;
  if (word.length <= limit) return [word];
  const characters = [...word];
  const pieces = [];
  for (let start = 0; start < characters.length; start += limit) pieces.push(characters.slice(start, start + limit).join(""));
  return pieces;
}
