// What is said below a message: why it failed or ended early, and whether it obeys a schema.

import { button, element } from "../dom.js";
import { checkAgainst } from "../schema_check.js";
import { isSettled } from "../storage/server_keeper.js";
import { translate } from "../texts/texts.js";
import { figuresText } from "./figures_text.js";

/** Returns the notes of a message, of which those that do not apply are null. */
export function notesOf(node, place, actions) {
  const { message } = node;
  return [schemaNote(message), errorNote(node, place, actions), finishNote(message), unseenNote(place), questionNote(node, place, actions)];
}

function errorNote(node, { isLast }, actions) {
  const { error } = node.message;
  if (error === null) return null;
  const text = isLast || isSettled(node.message) ? error.message : `${error.message} ${translate("message.isNotRead")}`;
  const again = button(translate("page.tryAgain"), () => actions.regenerate(node));
  // An alert that is drawn again is told again.
  return element("div", { class: "note error", role: isLast ? "alert" : null }, element("span", { text }), again);
}

/** A question has no answer where the page was closed before its first word. */
function questionNote(node, { isLast, answeredBy }, actions) {
  if (node.message.role !== "user" || !isLast || answeredBy === "page") return null;
  if (answeredBy === "tab") return element("div", { class: "note", text: translate("message.isInOtherTab") });
  const again = button(translate("page.tryAgain"), () => actions.askAgain(node));
  return element("div", { class: "note unanswered" }, element("span", { text: translate("message.hasNoAnswer") }), again);
}

function unseenNote({ unseen }) {
  return unseen === "" ? null : element("div", { class: "note unseen", text: unseen });
}

function schemaNote({ schema, content, error, toolCalls, finishReason }) {
  if (schema === null || error !== null || toolCalls.length > 0 || !content) return null;
  try {
    const { faults, unchecked } = checkAgainst(schema, JSON.parse(content));
    const rest = unchecked.length > 0 ? ` ${translate("message.notChecked", { names: unchecked.join(", ") })}` : "";
    if (faults.length === 0) return element("div", { class: "note good", text: translate("message.obeysSchema") + rest });
    return element("div", { class: "note error" }, element("span", { text: translate("message.breaksSchema", { faults: faults.join("; ") }) + rest }));
  } catch (fault) {
    const why = ["length", "stopped", "broken"].includes(finishReason) ? translate("message.wasCutOff") : fault.message;
    return element("div", { class: "note error", text: translate("message.isNoJson", { why }) });
  }
}

function finishNote({ finishReason }) {
  const said = { length: "message.cutOff", stopped: "message.stopped", broken: "message.brokenOff", content_filter: "message.withheld" };
  return Object.hasOwn(said, String(finishReason)) ? element("div", { class: "note", text: translate(said[finishReason]) }) : null;
}

export function figuresNote({ figures }) {
  return figures === null ? null : element("span", { class: "figures", text: figuresText(figures) });
}
