// The elements of blocks. A view is made for a block, and shows each newer state of it with as little change as it takes.

import { element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { cellsOf } from "./block_starts.js";
import { CodeView } from "./code_view.js";
import { formulaView, source } from "./formulas/formula_view.js";
import { buildInline, InlineView } from "./inline_view.js";

const HEADINGS_ABOVE = 2; // of the page: its title, and who wrote the message
const MAX_HEADING = 6;
const MAX_FILLED = 10_000; // cells of a table; behind them rows of few characters would make many more
// Blocks that run the way of their own language, with all that is in them
const TEXTS = new Set(["paragraph", "heading", "quote", "list", "table"]);

/** Shows the children of a container. */
export class ChildrenView {
  #views = [];
  #numSettled = 0;

  constructor(parent) {
    this.parent = parent;
  }

  update({ children }) {
    for (let index = this.#numSettled; index < children.length; index += 1) {
      const block = children[index];
      if (!this.#views[index]?.isOf(block)) {
        this.#drop(index);
        const view = new BlockView(block);
        if (this.parent.classList.contains("markdown") && TEXTS.has(block.kind)) view.element.dir = "auto";
        this.#views.push(view);
        this.parent.append(view.element);
      }
      this.#views[index].update(block);
      if (!block.isTentative && index === this.#numSettled) this.#numSettled += 1;
    }
    this.#drop(children.length);
  }

  #drop(from) {
    for (const view of this.#views.splice(from)) view.element.remove();
  }
}

class BlockView {
  constructor(block) {
    this.nature = natureOf(block);
    const { element: node, update } = MAKERS[block.kind](block);
    this.element = node;
    this.update = update;
  }

  isOf(block) {
    return natureOf(block) === this.nature;
  }
}

/** Returns what a view is made from once. More of a line may change it, as the language of code that has only begun. */
function natureOf({ kind, id, level, start, language, label, alignments, lines }) {
  return [kind, id, level, start, language, label, ...(alignments ? [...alignments, lines[0]] : [])].join("\n");
}

/** Each makes a block's element, and the function that shows a newer state of the block in it. */
const MAKERS = {
  paragraph: () => inline(element("p")),
  heading: ({ level }) => inline(element(`h${Math.min(level + HEADINGS_ABOVE, MAX_HEADING)}`, { class: `level-${level}` })),
  quote: () => container(element("blockquote")),
  list,
  item,
  note,
  rule: () => ({ element: element("hr"), update: () => {} }),
  code: (block) => new CodeView(block),
  maths,
  table,
};

function inline(node) {
  const view = new InlineView(node);
  return { element: node, update: (block) => view.update(block.text, !block.isTentative) };
}

function container(node) {
  const view = new ChildrenView(node);
  return { element: node, update: (block) => view.update(block) };
}

function list({ start }) {
  const node = start === null ? element("ul") : element("ol", { start: start === 1 ? null : start });
  const { update } = container(node);
  return {
    element: node,
    update: (block) => {
      if (block.isLoose) node.className = "loose";
      else node.removeAttribute("class");
      update(block);
    },
  };
}

function item() {
  const node = element("li");
  const content = element("div", { class: "item" });
  const { update } = container(content);
  let box = null;
  node.append(content);
  return {
    element: node,
    update: ({ isDone, ...block }) => {
      if (isDone !== null && box === null) {
        box = element("input", { type: "checkbox", disabled: true });
        node.classList.add("task");
        node.prepend(box);
      }
      if (box !== null) {
        box.toggleAttribute("checked", isDone === true);
        box.setAttribute("aria-label", translate(isDone ? "markdown.done" : "markdown.toDo"));
      }
      update(block);
    },
  };
}

/** The sign in front of a note, and the way back from it, are made by notes.js. */
function note({ label }) {
  const content = element("div", { class: "note-text" });
  const { update } = container(content);
  return { element: element("div", { class: "note", data: { note: label } }, content), update };
}

/** A formula is drawn when it is whole; until then, and if it never ends, its TeX is shown. */
function maths() {
  const node = element("div", { class: "formula-block" });
  let shown = null;
  return {
    element: node,
    update: ({ lines, isClosed }) => {
      const tex = lines.join("\n").trim();
      if (shown === `${isClosed}${tex}`) return;
      shown = `${isClosed}${tex}`;
      node.replaceChildren(isClosed ? formulaView(tex, true) : source({ tex, isDisplayed: true }));
    },
  };
}

function table({ alignments, lines }) {
  const body = element("tbody");
  const head = element("thead", {}, row(lines[0], alignments, "th"));
  const box = element("div", { class: "table-box", role: "group", "aria-label": translate("markdown.table"), tabindex: "0" }, element("table", {}, head, body));
  let numSettled = 1;
  return {
    element: box,
    update: (block) => {
      while (body.rows.length >= numSettled) body.lastChild.remove();
      for (const line of block.lines.slice(numSettled)) body.append(row(line, alignments, "td", body.rows.length * alignments.length < MAX_FILLED));
      // The last row of a table that is open may be one that is still being written.
      numSettled = Math.max(block.isTentative ? block.lines.length - 1 : block.lines.length, 1);
    },
  };
}

/** `isFilled`: the row gets the cells that its line lacks. */
function row(line, alignments, tag, isFilled = true) {
  const cells = cellsOf(line);
  const columns = isFilled ? alignments : alignments.slice(0, cells.length);
  return element(
    "tr",
    {},
    ...columns.map((alignment, index) => {
      const cell = element(tag, { class: alignment ? `align-${alignment}` : null, scope: tag === "th" ? "col" : null });
      buildInline(cells[index] ?? "", cell);
      return cell;
    }),
  );
}
