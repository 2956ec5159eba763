// ChatGPT's export: conversations.json, or several files of that kind, with a `mapping` of the nodes of each conversation.

import { message } from "../../chat/conversation.js";
import { isObject } from "../../objects.js";
import { translate } from "../../texts/texts.js";
import { listOf, systemSettings, textOf, timeOf, valueOf } from "./read.js";
import { joinAnswers, NotUnderstood, shortTitle, treeOf } from "./tree.js";

/** Tells whether a conversation, which is not read yet, has this format. */
export function knows(given) {
  return isObject(valueOf(given, "mapping"));
}

export function read(given) {
  const mapping = valueOf(given, "mapping");
  if (!isObject(mapping)) throw new NotUnderstood("import.noConversation");
  const nodes = Object.entries(mapping).filter(([, node]) => isObject(node));
  const entries = nodes.map(([id, node]) => ({ id, parent: node.parent ?? null, message: readMessage(node.message, given) }));
  const tree = joinAnswers(treeOf(entries), join);
  return {
    id: textOf(given.conversation_id) || textOf(given.id),
    title: shortTitle(textOf(given.title), translate("list.untitled")),
    updated: timeOf(given.update_time) ?? timeOf(given.create_time) ?? Date.now(),
    isPinned: given.is_starred === true,
    isNamed: true,
    activeLeaf: tree.ids.get(given.current_node) ?? tree.nodes.at(-1).id,
    nodes: tree.nodes,
    ...systemSettings(nodes.map(([, node]) => systemText(node.message))),
  };
}

/** Returns what a message tells the model about the whole conversation; most of them are empty. */
function systemText(said) {
  const { role, isHidden } = headOf(said);
  return role === "system" && !isHidden ? readContent(valueOf(said, "content"), role).content : "";
}

function headOf(said) {
  const isHidden = valueOf(valueOf(said, "metadata"), "is_visually_hidden_from_conversation") === true;
  return { role: valueOf(valueOf(said, "author"), "role"), isHidden };
}

/** Returns null for a node that shows nothing: instructions, and what is hidden in ChatGPT too. */
function readMessage(said, { default_model_slug: standard }) {
  const { role, isHidden } = headOf(said);
  const metadata = valueOf(said, "metadata");
  if (!["user", "assistant", "tool"].includes(role) || isHidden) return null;
  const { content, reasoning } = readContent(valueOf(said, "content"), role, valueOf(said, "recipient"));
  if (content === "" && reasoning === "") return null;
  if (role === "user") return message("user", { content });
  const model = [valueOf(metadata, "model_slug"), standard].find((each) => typeof each === "string");
  return message("assistant", { content, reasoning, finishReason: "stop", ...(model === undefined ? {} : { model }) });
}

function readContent(content, role, recipient = "all") {
  const type = valueOf(content, "content_type");
  if (type === "thoughts") {
    const thoughts = listOf(content.thoughts).filter(isObject).map(({ summary, content: text }) => [textOf(summary), textOf(text)].filter(Boolean).join("\n\n"));
    return { content: "", reasoning: thoughts.join("\n\n") };
  }
  if (type === "reasoning_recap" || type === "user_editable_context" || type === "model_editable_context") return { content: "", reasoning: "" };
  const text = [...listOf(valueOf(content, "parts")).map(partText), textOf(valueOf(content, "text")), textOf(valueOf(content, "result"))].filter(Boolean).join("\n\n");
  const isCode = ["assistant", "tool"].includes(role) && (type === "code" || type === "execution_output" || (role === "tool" && type === "text") || recipient !== "all");
  return { content: isCode && text !== "" ? fenced(text) : text, reasoning: "" };
}

/** Files lie beside conversations.json; their places are noted. */
function partText(part) {
  if (typeof part === "string") return textOf(part);
  const type = textOf(valueOf(part, "content_type"));
  if (type === "image_asset_pointer") return translate("export.picture", { name: textOf(part.asset_pointer).slice(0, 200) });
  return textOf(valueOf(part, "text"));
}

/** Returns a block of code whose fence is longer than any in the text. */
function fenced(text) {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, { length }) => Math.max(most, length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function join(into, { content, reasoning, model }) {
  into.content = [into.content, content].filter(Boolean).join("\n\n");
  into.reasoning = [into.reasoning, reasoning].filter(Boolean).join("\n\n");
  if (model) into.model = model;
}
