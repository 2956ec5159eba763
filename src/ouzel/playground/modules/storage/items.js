// Messages become items of /v1/conversations and come back from them. A message may be several items, and the tree of
// branches stands in the conversation's metadata: for each message the number of its items and, where it does not follow
// the one before, "<" with the number of the message that it follows (0: none).

import { message } from "../chat/conversation.js";
import { citationsOf, isHosted } from "../chat/response_answer.js";
import { isForModel, isPicture } from "../files/kinds.js";
import { translate } from "../texts/texts.js";

const OF_OTHER_CLIENTS = new Set(["system", "developer"]); // roles of messages that this page never writes
const KEY_PREFIX = "tree";
const MAX_VALUE_LENGTH = 512; // the API's, of a value of metadata
const MAX_TREE_KEYS = 13; // of the API's 16 keys

export function itemsOf(said) {
  if (said.role === "tool") return [{ type: "function_call_output", call_id: said.toolCallId, output: said.content }];
  if (said.role === "user") return [{ type: "message", role: "user", content: userParts(said) }];
  if (OF_OTHER_CLIENTS.has(said.role)) return [{ type: "message", role: said.role, content: [{ type: "input_text", text: said.content }] }];
  if (said.role === "approval") return said.approvals.map(approvalItem);
  const items = said.reasoning ? [reasoningItem(said.reasoning)] : [];
  items.push(...said.hosted);
  if (said.content || said.toolCalls.length + said.hosted.length === 0) {
    items.push({ type: "message", role: "assistant", content: [{ type: "output_text", text: said.content, ...annotations(said) }] });
  }
  return [...items, ...said.toolCalls.map(callItem)];
}

function userParts({ content, images, files }) {
  const parts = images.map(({ name, url }) => (isPicture(url) ? { type: "input_image", image_url: url } : { type: "input_file", filename: name, file_data: url }));
  parts.push(...files.filter(isRead).map(({ id, name }) => ({ type: "input_file", file_id: id, filename: name })));
  return content || parts.length === 0 ? [...parts, { type: "input_text", text: content }] : parts;
}

/** Tells whether the model reads a file, rather than code or a search. */
export function isRead({ use, isDeleted }) {
  return isForModel(use) && !isDeleted;
}

function reasoningItem(text) {
  return { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text }] };
}

function approvalItem({ id, approve }) {
  return { type: "mcp_approval_response", approval_request_id: id, approve };
}

function annotations({ citations }) {
  return citations.length > 0 ? { annotations: citations.map(({ marker, ...annotation }) => annotation) } : {};
}

function callItem({ id, name, arguments: text }) {
  return { type: "function_call", call_id: id, name, arguments: text };
}

/** Returns the message that these items are. */
export function messageOf(items) {
  const said = message("assistant");
  for (const item of items) takeItem(said, item);
  return said;
}

function takeItem(said, item) {
  if (item.type === "function_call") {
    said.toolCalls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
  } else if (item.type === "function_call_output") {
    Object.assign(said, { role: "tool", toolCallId: item.call_id, content: textOf(item.output) });
  } else if (item.type === "reasoning") {
    said.reasoning += textOf(item.content ?? []);
  } else if (item.type === "mcp_approval_response") {
    said.role = "approval";
    said.approvals.push({ id: item.approval_request_id, approve: item.approve });
  } else if (isHosted(item)) {
    said.hosted.push(item);
  } else if (item.type === "message") {
    said.role = item.role;
    said.citations.push(...citationsOf(item));
    said.content += textOf(item.content);
    said.images.push(...imagesOf(item.content));
    said.files.push(...filesOf(item.content));
  }
}

function textOf(content) {
  if (typeof content === "string") return content;
  return content.map((part) => part.text ?? part.refusal ?? "").join("");
}

function imagesOf(content) {
  if (typeof content === "string") return [];
  const parts = content.filter((part) => (part.type === "input_image" ? part.image_url : part.file_data));
  return parts.map((part, index) => ({ name: part.filename ?? translate("list.image", { number: index + 1 }), url: part.image_url ?? part.file_data }));
}

function filesOf(content) {
  if (typeof content === "string") return [];
  const parts = content.filter((part) => part.type === "input_file" && part.file_id);
  return parts.map(({ file_id: id, filename }) => ({ id, name: filename ?? id, size: null, use: "model" }));
}

/** `parts` are, for each message, the number of its items and the place of the message that it follows (-1: none). */
export function treeMetadata(parts) {
  const text = parts.map(({ numItems, parent }, place) => numItems + (parent === place - 1 ? "" : `<${parent + 1}`)).join(",");
  const pieces = text.match(new RegExp(`.{1,${MAX_VALUE_LENGTH}}`, "g")) ?? [];
  if (pieces.length > MAX_TREE_KEYS) throw new Error(translate("list.tooManyBranches"));
  return Object.fromEntries(pieces.map((piece, index) => [`${KEY_PREFIX}${index}`, piece]));
}

/** Returns the parts that the metadata tells of; items beyond them are messages of their own. */
export function treeParts(metadata, numItems) {
  const pieces = Array.from({ length: MAX_TREE_KEYS }, (_, index) => metadata[`${KEY_PREFIX}${index}`] ?? "");
  const entries = pieces.join("").split(",").filter(Boolean);
  const parts = entries.map((entry, place) => {
    const [count, parent] = entry.split("<");
    return { numItems: Number(count), parent: parent === undefined ? place - 1 : Number(parent) - 1 };
  });
  let told = parts.reduce((sum, part) => sum + part.numItems, 0);
  for (; told < numItems; told += 1) parts.push({ numItems: 1, parent: parts.length - 1 });
  return parts;
}
