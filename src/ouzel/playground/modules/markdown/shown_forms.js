// Code that makes something to look at has a button that shows it below the code: a page, or a diagram. What it needs is loaded
// at the click.

import { button } from "../dom.js";
import { loadPart } from "../later.js";
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
  const part = await loadPart(() => import("./preview_view.js"));
  return part?.previewView(code) ?? null;
}

/** Returns null where the drawing of this kind cannot be loaded. */
async function showDiagram(code) {
  const part = await loadPart(() => import("./diagrams/diagram_view.js"));
  return (await part?.diagramView(code)) ?? null;
}

/** Returns a button that stays pressed while the element that `make` resolves to is there; null means that it cannot be there. */
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
    if (node === null) control.setAttribute("aria-pressed", "false");
    if (control.getAttribute("aria-pressed") !== "true" || shown !== null) return;
    shown = node;
    place(node);
  });
  control.setAttribute("aria-pressed", "false");
  return control;
}
