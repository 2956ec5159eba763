// The text of an answer as it is read aloud: words alone, and a blank line between its blocks. Code that stands by itself,
// notes, sources and controls are left out.

const SILENT = ".code-block, .note, .note-reference, .marker, .footnote, hr, button, input, svg, img";
const BLOCKS = "p, li, h3, h4, h5, h6, blockquote, tr, .formula-block";
const SPEAKABLE_TEX = /^[\p{L}\p{N}\s.,:;!?()+=<>/-]*$/u; // letters that are read as they stand

/** Returns the text of an element that Markdown was drawn in; empty where nothing of it can be said. */
export function spokenText(prose) {
  const blocks = [""];
  add(prose, blocks);
  return blocks.map(trimmed).filter((block) => /[\p{L}\p{N}]/u.test(block)).join("\n\n");
}

function add(node, blocks) {
  if (node.nodeType === Node.TEXT_NODE) return void (blocks[blocks.length - 1] += node.data);
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(SILENT)) return;
  if (node.matches(".formula")) return void (blocks[blocks.length - 1] += spokenFormula(node.dataset.tex));
  if (node.localName === "br") return void (blocks[blocks.length - 1] += " ");
  const isBlock = node.matches(BLOCKS);
  if (isBlock) blocks.push("");
  if (node.localName === "tr") blocks[blocks.length - 1] = spokenRow(node);
  else for (const child of node.childNodes) add(child, blocks);
  if (isBlock) blocks.push("");
}

/** Returns the cells of a row as a list. */
function spokenRow({ cells }) {
  return [...cells].map(spokenText).filter((text) => text !== "").join(", ");
}

/** A formula whose signs have no words is left out. */
function spokenFormula(tex) {
  return SPEAKABLE_TEX.test(tex) ? tex : "";
}

function trimmed(text) {
  return text.replace(/\s+/g, " ").replace(/ (?=[.,;:!?])/g, "").trim();
}
