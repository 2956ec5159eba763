// Open WebUI's export of chats: a list, where each chat has its messages by their ids.

import { message } from "../../chat/conversation.js";
import { isObject } from "../../objects.js";
import { translate } from "../../texts/texts.js";
import { labelsIn } from "../labels.js";
import { isDataUrl, listOf, systemSettings, textOf, timeOf, valueOf } from "./read.js";
import { NotUnderstood, shortTitle, treeOf } from "./tree.js";

const THOUGHT = '<details type="reasoning"'; // Open WebUI puts reasoning before the answer, as HTML and a quotation
const THOUGHT_END = "</details>";
const NUM_OF_ID = 8; // characters of the id of a folder, in its name

/** Tells whether a chat, which is not read yet, has this format. */
export function knows(given) {
  return isObject(historyOf(given));
}

function historyOf(given) {
  return valueOf(valueOf(given, "chat") ?? given, "history");
}

export function read(given) {
  const history = historyOf(given);
  const messages = valueOf(history, "messages");
  if (!isObject(messages)) throw new NotUnderstood("import.noConversation");
  const entries = Object.entries(messages).filter(([, said]) => isObject(said)).map(([id, said]) => ({ id, parent: said.parentId ?? null, message: readMessage(said) }));
  const { nodes, ids } = treeOf(entries);
  const chat = valueOf(given, "chat") ?? given;
  return {
    id: textOf(given.id),
    title: shortTitle(textOf(given.title) || textOf(chat.title), translate("list.untitled")),
    updated: timeOf(given.updated_at) ?? timeOf(chat.timestamp) ?? timeOf(given.created_at) ?? Date.now(),
    isPinned: given.pinned === true,
    isNamed: true,
    ...readLabels(given, chat),
    activeLeaf: ids.get(valueOf(history, "currentId")) ?? nodes.at(-1).id,
    nodes,
    ...systemSettings([...systemPlaces(given, chat), ...Object.values(messages).filter((said) => valueOf(said, "role") === "system").map(({ content }) => textOf(content))]),
  };
}

/**
 * Returns the folder and the tags of a chat. The file has the id of a folder and not its name: the beginning of the id is
 * then the name, so that the chats of a folder stay together. Tags stand beside the chat, and in older files in it.
 */
function readLabels(given, chat) {
  const id = textOf(given.folder_id);
  const places = [valueOf(valueOf(given, "meta"), "tags"), valueOf(chat, "tags")];
  const tags = places.flatMap(listOf).map((tag) => (isObject(tag) ? tag.name : tag)); // older ones are objects
  return labelsIn({ folder: id === "" ? "" : `Open WebUI ${id.slice(0, NUM_OF_ID)}`, tags });
}

/** Returns the system prompt of a chat, which each version of Open WebUI has in another place. */
function systemPlaces(given, chat) {
  return [valueOf(valueOf(chat, "params"), "system"), valueOf(chat, "system"), valueOf(given, "system")].map(textOf);
}

/** A system message is a setting in this page, and leads from one message to the next. */
function readMessage(said) {
  const { role, files } = said;
  if (role !== "user" && role !== "assistant") return null;
  const images = listOf(files).filter((file) => isObject(file) && file.type === "image" && isDataUrl(file.url));
  const others = listOf(files).filter((file) => isObject(file) && !images.includes(file));
  const names = others.map((file) => translate("export.file", { name: textOf(file.name) || textOf(file.url).slice(0, 200) }));
  const { content, reasoning } = role === "assistant" ? splitThought(textOf(said.content)) : { content: textOf(said.content), reasoning: "" };
  return message(role, {
    content: [...names, content].filter(Boolean).join("\n\n"),
    reasoning,
    images: images.map(({ name, url }, index) => ({ name: textOf(name) || translate("list.image", { number: index + 1 }), url })),
    finishReason: role === "assistant" ? "stop" : null,
    ...(role === "assistant" && typeof said.model === "string" ? { model: said.model } : {}),
  });
}

function splitThought(text) {
  const end = text.trimStart().startsWith(THOUGHT) ? text.indexOf(THOUGHT_END) : -1;
  if (end < 0) return { content: text, reasoning: "" };
  const inner = text.slice(text.indexOf(">") + 1, end);
  const summaryEnd = inner.indexOf("</summary>");
  const quoted = summaryEnd < 0 ? inner : inner.slice(summaryEnd + "</summary>".length);
  const lines = quoted.trim().split("\n").map((line) => unescaped(line.replace(/^(>|&gt;) ?/, "")));
  return { content: text.slice(end + THOUGHT_END.length).trimStart(), reasoning: lines.join("\n") };
}

function unescaped(line) {
  return line.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#x27;", "'").replaceAll("&amp;", "&");
}
