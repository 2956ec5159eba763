// The button of an answer that reads it aloud, and stops. What plays sound is loaded when it is first pressed.

import { button } from "../dom.js";
import { loadPart } from "../later.js";
import { translate } from "../texts/texts.js";

let current = null; // the answer that is read: its node, its button, an AbortController, and what watches its message

/**
 * Returns the button of an answer; null where no model of the server reads texts aloud. `article` is the element of the
 * message, and `prose` that of its text; `actions` are those of Chat.
 */
export function readingButton(node, { article, prose, actions }) {
  if (actions.settings.server.speaker === null || prose === null || node.message.content.trim() === "") return null;
  const control = button("", () => (isRead(node) ? stopReading() : read(node, { control, article, prose, actions })));
  if (isRead(node)) current.control = control; // the message was drawn again
  showState(control, isRead(node));
  return control;
}

function isRead(node) {
  return current?.node === node;
}

function showState(control, isReading) {
  control.textContent = translate(isReading ? "message.stopReading" : "message.readAloud");
}

function stopReading() {
  if (current === null) return;
  const { control, work, watch } = current;
  current = null;
  work.abort();
  watch.disconnect();
  showState(control, false);
}

async function read(node, { control, article, prose, actions }) {
  stopReading();
  const work = new AbortController();
  const reading = (current = { node, control, work, watch: watchLeaving(article) });
  showState(control, true);
  const part = await loadPart(() => import("../speech/reading.js"), () => read(node, { control, article, prose, actions }));
  try {
    if (part === null || work.signal.aborted) return;
    const { api, settings } = actions;
    await part.readAloud(prose, { api, settings, signal: work.signal });
  } catch (error) {
    if (reading === current) actions.view.notice(error.message, () => current === null);
  } finally {
    if (reading === current) stopReading();
  }
}

/** Stops when the message is no longer on the page: another conversation, branch or part of the page is shown. */
function watchLeaving(article) {
  const watch = new ResizeObserver(() => article.checkVisibility() || stopReading());
  watch.observe(article);
  return watch;
}
