// Code that makes something to look at has a button that shows it below the code: a page, or a diagram. What it needs is loaded
// at the click.

import { button } from "../dom.js";
import { translate } from "../texts/texts.js";

const PAGES = new Set(["html", "htm", "svg"]);

/** Returns the buttons. `code` returns the code of that moment; `place` puts an element below it. */
export function shownForms(language, { code, place }) {
  const name = language.toLowerCase();
  if (PAGES.has(name)) return [toggle(translate("markdown.preview"), async () => showPage(code()), place)];
  if (name === "mermaid") return [toggle(translate("markdown.showPicture"), async () => showDiagram(code()), place)];
  return [];
}

async function showPage(code) {
  const { previewView } = await import("./preview_view.js");
  return previewView(code);
}

async function showDiagram(code) {
  const { diagramView } = await import("./diagrams/diagram_view.js");
  return diagramView(code);
}

/** Returns a button that stays pressed while the element that `make` resolves to is there. */
function toggle(label, make, place) {
  let shown = null;
  const control = button(label, async () => {
    const isShown = control.getAttribute("aria-pressed") === "true";
    control.setAttribute("aria-pressed", String(!isShown));
    if (isShown) {
      shown?.remove();
      shown = null;
      return;
    }
    const node = await make();
    if (control.getAttribute("aria-pressed") !== "true" || shown !== null) return;
    shown = node;
    place(node);
  });
  control.setAttribute("aria-pressed", "false");
  return control;
}
