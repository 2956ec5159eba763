// Whoever selects a text and copies it gets the TeX of its formulas, in place of letters without their places.

const BLOCKS = "p, li, h3, h4, h5, h6, tr, pre, blockquote, div, hr";

let isListening = false;

/** Listens to copies from the page, once for all texts. */
export function listenToCopies() {
  if (isListening) return;
  isListening = true;
  document.addEventListener("copy", copy);
}

function copy(event) {
  const selection = getSelection();
  if (selection.isCollapsed || event.target.closest?.("input, textarea")) return;
  const range = selection.getRangeAt(0);
  const outer = elementAt(range.commonAncestorContainer).closest(".formula");
  const fragment = outer === null ? range.cloneContents() : document.createDocumentFragment();
  if (outer !== null) fragment.append(outer.cloneNode(true));
  const formulas = fragment.querySelectorAll(".formula");
  if (formulas.length === 0) return;
  for (const formula of formulas) formula.replaceWith(written(formula));
  event.clipboardData.setData("text/html", new XMLSerializer().serializeToString(fragment));
  for (const block of fragment.querySelectorAll(BLOCKS)) block.append("\n");
  for (const button of fragment.querySelectorAll("button")) button.remove();
  event.clipboardData.setData("text/plain", fragment.textContent.trimEnd());
  event.preventDefault();
}

function elementAt(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
}

function written({ dataset: { tex }, classList }) {
  return classList.contains("displayed") ? `$$${tex}$$` : `$${tex}$`;
}
