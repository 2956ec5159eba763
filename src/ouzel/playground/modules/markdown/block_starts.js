// What a line may begin. Each function looks at what is left of a line and returns the block that begins there, or null.

const FENCE = /^(`{3,}|~{3,})(.*)$/s;
const HEADING = /^(#{1,6})(?=[ \t]|$)/;
const RULE = /^(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const MARKER = /^(?:([-+*])|(\d{1,9})([.)]))(?=[ \t]|$)/;
const MAX_COLUMNS = 1000;
const MATHS = { "$$": "$$", "\\[": "\\]" };
const ENVIRONMENT =
  /^\\begin\{((?:align|alignat|equation|gather|multline|eqnarray|CD|aligned|alignedat|gathered|split|[dr]?cases|array|[pbBvV]?matrix)\*?)\}/;

const NOTE = /^\[\^([^\s[\]]{1,40})\]:[ \t]*/;

export function headingAt(text) {
  const match = HEADING.exec(text);
  return match && { level: match[1].length, text: withoutClosingHashes(text.slice(match[1].length).trim()) };
}

/** A heading may end in hashes of its own, with a space before. */
function withoutClosingHashes(text) {
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  if (end === text.length) return text;
  return end === 0 || " \t".includes(text[end - 1]) ? text.slice(0, end).trimEnd() : text;
}

export function fenceAt(text) {
  const match = FENCE.exec(text);
  if (match === null || (match[1][0] === "`" && match[2].includes("`"))) return null;
  return { fence: match[1], language: match[2].trim().split(/\s/, 1)[0] };
}

export function closesFence(text, fence) {
  const trimmed = text.trim();
  return trimmed.length >= fence.length && trimmed === fence[0].repeat(trimmed.length);
}

export function isRule(text) {
  return RULE.test(text);
}

/** Returns the level of the heading that a line makes of the paragraph above it; 0 where it makes none. */
export function underlineLevel(text) {
  const trimmed = text.trimEnd();
  if (/^=+$/.test(trimmed)) return 1;
  return /^-+$/.test(trimmed) ? 2 : 0;
}

export function markerAt(text) {
  const match = MARKER.exec(text);
  if (match === null) return null;
  const [marker, bullet, number, delimiter] = match;
  return { marker, type: bullet ?? delimiter, start: number === undefined ? null : Number(number) };
}

/** Returns the label of a note at the foot of the text, and its length with the marks. */
export function noteAt(text) {
  const match = NOTE.exec(text);
  return match && { label: match[1], length: match[0].length };
}

/**
 * Returns maths that stand on lines of their own: what closes them, and their first line; `isWhole` where that is all. The
 * marks of an environment are a part of its TeX.
 */
export function mathsAt(text) {
  const environment = ENVIRONMENT.exec(text)?.[1];
  if (environment !== undefined) return environmentAt(text, environment);
  const end = MATHS[text.slice(0, 2)];
  if (end === undefined) return null;
  const rest = text.slice(2);
  const at = rest.indexOf(end);
  if (at < 0) return { end, line: rest, isWhole: false };
  return rest.slice(at + 2).trim() === "" && rest.slice(0, at).trim() !== "" ? { end, line: rest.slice(0, at), isWhole: true } : null;
}

function environmentAt(text, environment) {
  const end = `\\end{${environment}}`;
  const numOpen = openings(text, environment);
  if (numOpen > 0) return { end, environment, numOpen, line: text, isWhole: false };
  return text.trimEnd().endsWith(end) ? { end, environment, numOpen, line: text.trimEnd(), isWhole: true } : null;
}

/** Returns how many more times an environment begins in a text than it ends there. */
export function openings(text, environment) {
  return text.split(`\\begin{${environment}}`).length - text.split(`\\end{${environment}}`).length;
}

/** Returns how the columns of a table are aligned, where the line is the one below the head; else null. */
export function alignmentsAt(text) {
  if (!text.includes("|") || !/^[-:| \t]+$/.test(text)) return null;
  const cells = cellsOf(text);
  if (cells.length > MAX_COLUMNS) return null;
  if (!cells.every((cell) => /^:?-+:?$/.test(cell))) return null;
  return cells.map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "end";
    return cell.startsWith(":") ? "start" : "";
  });
}

/** Returns the cells of a table's line. */
export function cellsOf(text) {
  const cells = [];
  let cell = "";
  const line = text.trim().replace(/^\|/, "");
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === "\\" && line[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (line[at] === "|") {
      cells.push(cell.trim());
      cell = "";
    } else {
      cell += line[at];
    }
  }
  if (cell.trim() !== "" || cells.length === 0) cells.push(cell.trim());
  return cells;
}
