// A conversation as a file: all of it in JSON, or the branch that is shown in Markdown.

import { textWithSources } from "../chat/footnotes.js";
import { decisionText, hostedParts } from "../chat/hosted_texts.js";
import { wireMessage } from "../chat/request.js";
import { isPicture } from "../files/kinds.js";
import { setValues } from "../settings/values.js";
import { translate } from "../texts/texts.js";
import { FORMAT } from "./import/own.js";
import { labelsIn } from "./labels.js";

const ROLES = ["user", "assistant", "tool", "system", "approval"];

/** `labels` are the folder and the tags (labels.js). */
export function jsonText(conversation, labels) {
  const { key, title, updated, nodes, activeLeaf, settings } = conversation;
  const said = conversation.path().map((node) => node.message);
  const messages = said.filter(({ role }) => role !== "approval").map(wireMessage);
  return JSON.stringify({ key, title, updated: new Date(updated).toISOString(), ...labels, messages, tree: { activeLeaf, nodes }, settings: settings === null ? {} : setValues(settings) }, null, 2);
}

/**
 * Returns a file of all conversations (`blob`), how many it has (`numSaved`), and the titles of those that could not be
 * read, with the `reason` (`failed`). `onProgress` gets the number of those that are done, and of all.
 */
export async function exportAll(library, { onProgress, signal }) {
  const records = library.records.shown;
  const failed = [];
  const parts = [];
  for (const [index, { key, title, isPinned = false, isNamed = false, ...record }] of records.entries()) {
    if (signal.aborted) break;
    try {
      const { updated, nodes, activeLeaf, settings } = await library.load(key);
      const ofSettings = settings === null ? {} : { settings: setValues(settings) };
      parts.push(JSON.stringify({ key, title, updated: new Date(updated).toISOString(), isPinned, isNamed, ...labelsIn(record), activeLeaf, ...ofSettings, nodes }));
    } catch (error) {
      failed.push({ title, reason: error.message || translate("list.goneFromServer") });
    }
    onProgress(index + 1, records.length);
  }
  const head = `{"format":${JSON.stringify(FORMAT)},"version":1,"conversations":[\n`;
  const pieces = parts.flatMap((part, index) => (index === 0 ? [part] : [",\n", part])); // one text of all may be too long
  return { blob: new Blob([head, ...pieces, "\n]}\n"], { type: "application/json" }), numSaved: parts.length, failed };
}

export function markdownText(conversation) {
  const parts = conversation.path().map((node) => markdownOf(node.message));
  return `# ${conversation.title}\n\n${parts.join("\n\n")}\n`;
}

/** Returns a file's name made of a title, of letters that every system takes. */
export function fileName(title, ending) {
  const name = title.replace(/[^\p{Letter}\p{Number} _-]+/gu, " ").replace(/\s+/g, "-").slice(0, 60);
  return `${name.replace(/^-+|-+$/g, "") || "conversation"}.${ending}`;
}

function markdownOf(said) {
  const { role, content, reasoning, images, files, toolCalls, hosted, approvals, model } = said;
  const parts = [`## ${ROLES.includes(role) ? translate(`export.${role}`) : role}${model ? ` · ${model}` : ""}`];
  if (reasoning) parts.push(reasoning.replace(/^/gm, "> "));
  if (images.length > 0) parts.push(images.map(({ name, url }) => translate(isPicture(url) ? "export.picture" : "export.file", { name })).join("\n"));
  if (files.length > 0) parts.push(files.map(({ name }) => translate("export.file", { name })).join("\n"));
  parts.push(...hosted.map(hostedMarkdown).filter(Boolean));
  parts.push(...approvals.map(decisionText));
  if (content) parts.push(textWithSources(said));
  parts.push(...toolCalls.map((call) => `${translate("export.calls", { name: call.name })}\n\n\`\`\`json\n${call.arguments}\n\`\`\``));
  return parts.join("\n\n");
}

function hostedMarkdown(item) {
  const { title, details, result } = hostedParts(item);
  return [title, details, result].filter(Boolean).map((text, index) => (index === 0 ? text : `\`\`\`\`\n${text}\n\`\`\`\``)).join("\n\n");
}
