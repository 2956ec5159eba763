// The branches that stand in the same place: a person turns between them, and sees which models made them.

import { button, element } from "../dom.js";
import { translate } from "../texts/texts.js";

/** Returns the buttons for the branches beside a node; null where it is the only one. */
export function branchesView(node, siblings, onShow) {
  if (siblings.length < 2) return null;
  const index = siblings.indexOf(node);
  const turn = (label, icon, step) => {
    const there = siblings[index + step];
    return button(label, () => onShow(there), { icon, class: "points", disabled: there === undefined });
  };
  const count = element("span", { text: `${index + 1} / ${siblings.length}` });
  const turns = [turn(translate("message.branchBefore"), "‹", -1), count, turn(translate("message.nextBranch"), "›", 1)];
  return element("span", { class: "branches" }, ...turns, ...modelButtons(node, siblings, onShow));
}

/** Returns a button for each branch, named by its model, where several models made them. */
function modelButtons(node, siblings, onShow) {
  const names = new Set(siblings.map(({ message }) => message.model));
  if (names.size < 2) return [];
  return siblings.map((each) => {
    const text = each.message.model ?? translate("message.unknownModel");
    return button(text, () => onShow(each), { class: "branch-model", dir: "ltr", "aria-current": each === node ? "true" : null });
  });
}
