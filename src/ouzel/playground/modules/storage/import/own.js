// The page's own export: of one conversation, or of all of them.

import { message } from "../../chat/conversation.js";
import { canBeCited, canBeShown } from "../../chat/readable.js";
import { isHosted } from "../../chat/response_answer.js";
import { isObject } from "../../objects.js";
import { readValues } from "../../settings/values.js";
import { translate } from "../../texts/texts.js";
import { labelsIn } from "../labels.js";
import { copyOf, isDataUrl, listOf, textOf, timeOf, valueOf } from "./read.js";
import { NotUnderstood, shortTitle, treeOf } from "./tree.js";

/** The name of the format, in the file of all conversations. */
export const FORMAT = "ouzel.conversations";
const ROLES = ["user", "assistant", "tool", "approval", "system"];
const USES = ["model", "python", "search"];

/** Tells whether a conversation, which is not read yet, has this format. Those of a file that names the format all have it. */
export function knows(given) {
  return isObject(valueOf(given, "tree"));
}

export function read(given) {
  if (!isObject(given)) throw new NotUnderstood("import.noConversation");
  const tree = valueOf(given, "tree") ?? given;
  const entries = listOf(valueOf(tree, "nodes")).filter(isNode).map((node) => ({ id: node.id, parent: node.parent, message: readMessage(node.message) }));
  const { nodes, ids } = treeOf(entries);
  return {
    id: textOf(given.key),
    title: shortTitle(textOf(given.title), translate("list.untitled")),
    updated: timeOf(given.updated) ?? Date.now(),
    isPinned: given.isPinned === true,
    isNamed: given.isNamed === true,
    ...labelsIn(given),
    activeLeaf: ids.get(valueOf(tree, "activeLeaf")) ?? nodes.at(-1).id,
    nodes,
    ...(isObject(given.settings) ? { settings: readValues(given.settings, { isForeign: true }).values } : {}),
  };
}

function isNode(node) {
  return isObject(node) && Number.isSafeInteger(node.id) && isObject(node.message) && ROLES.includes(node.message.role);
}

function readMessage(said) {
  const { role, content, reasoning, toolCallId, finishReason, model } = said;
  return message(role, {
    content: textOf(content),
    reasoning: textOf(reasoning),
    images: listOf(said.images).filter((image) => isDataUrl(valueOf(image, "url"))).map(({ name, url }) => ({ name: textOf(name), url })),
    files: listOf(said.files).filter(isFile).map(readFile),
    toolCalls: listOf(said.toolCalls).filter(isObject).map((call) => ({ id: textOf(call.id), name: textOf(call.name), arguments: textOf(call.arguments) })),
    toolCallId: typeof toolCallId === "string" ? toolCallId : null,
    hosted: listOf(said.hosted).map((item) => copyOf(item)).filter((item) => isObject(item) && isHosted(item) && canBeShown(item)),
    citations: listOf(said.citations).map((citation) => copyOf(citation)).filter(canBeCited),
    approvals: listOf(said.approvals).filter(isObject).map(({ id, approve }) => ({ id: textOf(id), approve: approve === true })),
    finishReason: typeof finishReason === "string" ? finishReason : null,
    figures: isFigures(said.figures) ? copyOf(said.figures) : null,
    tokens: isTokens(said.tokens) ? copyOf(said.tokens) : null,
    schema: isObject(said.schema) ? copyOf(said.schema) : null,
    error: isObject(said.error) ? { message: textOf(said.error.message), field: textOf(said.error.field) || null, status: Number(said.error.status) || 0 } : null,
    ...(typeof model === "string" ? { model } : {}),
  });
}

function isFile(file) {
  return isObject(file) && typeof file.id === "string" && USES.includes(file.use);
}

function readFile({ id, name, size, use, isDeleted }) {
  return { id, name: textOf(name), size: Number.isFinite(size) ? size : null, use, ...(isDeleted === true ? { isDeleted } : {}) };
}

function isFigures(figures) {
  return isObject(figures) && ["timeToFirstToken", "tokensPerSecond", "completionTokens"].every((name) => Number.isFinite(figures[name]));
}

function isTokens(tokens) {
  const isToken = (token) => isObject(token) && typeof token.text === "string" && (token.logprob === null || Number.isFinite(token.logprob));
  return Array.isArray(tokens) && tokens.every((token) => isToken(token) && listOf(token.alternatives).every(isToken) && Array.isArray(token.alternatives));
}
