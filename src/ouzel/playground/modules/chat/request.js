// A chat becomes the body of a request. Settings that are empty are not sent: the model's own defaults hold then.

import { isForPython, kindOfUrl } from "../files/kinds.js";
import { partOfFile, partOfUrl } from "../files/parts.js";
import { PYTHON } from "../server.js";
import { isRead, itemsOf } from "../storage/items.js";
import { isSettled } from "../storage/server_keeper.js";
import { withoutUnseen } from "./unseen.js";

const WORK_DIRECTORY = "/mnt/data"; // of code in the sandbox
const MAX_CONTAINER_FILES = 50; // the API's
const RESULTS = { code_interpreter: "code_interpreter_call.outputs", file_search: "file_search_call.results" };

/**
 * Returns the body of a request for an answer behind the nodes of a path. `continued` is an answer that the model is to
 * go on with. A body with `input` is for POST /v1/responses. `isBackground` asks the server to go on without the page,
 * where it can.
 */
export function bodyFor(settings, path, { continued = null, isBackground = false } = {}) {
  const settled = path.map((node) => node.message).filter((said) => said.role !== "assistant" || isSettled(said));
  const messages = settled.filter((said, index) => said.role !== "user" || settled[index + 1]?.role !== "user"); // older conversations may have two in a row
  const { values, tools, hostedEntries: hosted, parameters, schema, topLogprobs } = settings;
  const common = { model: settings.model.name, system: values.system, settings: { parameters, schema, topLogprobs }, tools };
  const usesServerTools = continued === null && hasServerTools(settings, messages);
  const seen = messages.map((said) => withoutUnseen(said, { model: settings.model, usesServerTools }));
  if (usesServerTools || (continued === null && isBackground && !hasVideos(seen))) {
    return responseBody({ ...common, messages: seen, hosted, isBackground });
  }
  const all = [...seen.filter(({ role }) => role !== "approval"), ...(continued === null ? [] : [continued])];
  return chatBody({ ...common, messages: all, continued: continued !== null });
}

/** Tells whether the server runs tools in an answer behind these messages. */
export function hasServerTools({ hostedEntries }, messages) {
  return hostedEntries.length > 0 || messages.some((said) => said.hosted.length > 0);
}

/** Responses have no videos: such a question is a chat, which ends with the page. */
function hasVideos(messages) {
  return messages.some(({ images }) => images.some(({ url }) => kindOfUrl(url) === "video"));
}

/** Returns a body in which tokens for MCP servers cannot be read, to be shown. */
export function withoutSecrets(body) {
  const hidden = (tool) => (tool.authorization === undefined ? tool : { ...tool, authorization: "TOKEN" });
  return body.tools === undefined ? body : { ...body, tools: body.tools.map(hidden) };
}

/** Returns the body for POST /v1/chat/completions. `continued` is an answer that the model is to go on with. */
export function chatBody({ model, system, messages, settings, tools, continued = false }) {
  const body = { model, messages: messages.map(wireMessage), ...settings.parameters };
  if (system) body.messages.unshift({ role: "system", content: system });
  if (tools.length > 0) body.tools = tools;
  if (settings.schema !== null) body.response_format = responseFormat(settings.schema);
  if (settings.topLogprobs !== null) Object.assign(body, { logprobs: true, top_logprobs: settings.topLogprobs });
  if (continued) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  return { ...body, stream: true, stream_options: { include_usage: true } };
}

/** Returns the body for POST /v1/responses, where the server runs the tools of the entries `hosted`. */
export function responseBody({ model, system, messages, settings, tools, hosted, isBackground = false }) {
  const { max_tokens: maxTokens, ...parameters } = settings.parameters;
  const runsPython = hosted.some(({ type }) => type === PYTHON);
  const said = runsPython ? messages.map(withNote) : messages;
  const body = { model, input: said.flatMap(itemsOf), ...parameters };
  if (system) body.instructions = system;
  if (maxTokens !== undefined) body.max_output_tokens = maxTokens;
  if (tools.length + hosted.length > 0) body.tools = [...tools.map(({ function: called }) => ({ type: "function", ...called })), ...hosted.map((entry) => withFiles(entry, messages))];
  if (settings.schema !== null) body.text = { format: { type: "json_schema", ...responseFormat(settings.schema).json_schema } };
  const include = hosted.map(({ type }) => RESULTS[type]).filter(Boolean);
  if (settings.topLogprobs !== null) {
    include.push("message.output_text.logprobs");
    body.top_logprobs = settings.topLogprobs;
  }
  if (include.length > 0) body.include = include;
  return isBackground ? { ...body, store: true, background: true, stream: true } : { ...body, store: false, stream: true };
}

/** Gives the sandbox the files that are for it. */
function withFiles(entry, messages) {
  const ids = messages.flatMap(({ files }) => files.filter(isOpenedByCode)).map(({ id }) => id);
  if (entry.type !== PYTHON || ids.length === 0) return entry;
  return { ...entry, container: { ...entry.container, file_ids: ids.slice(-MAX_CONTAINER_FILES) } };
}

/** Tells the model where code finds the files of a message. */
function withNote(said) {
  const paths = said.files.filter(isOpenedByCode).map(({ name }) => `${WORK_DIRECTORY}/${name}`);
  if (paths.length === 0) return said;
  return { ...said, content: [`Files for Python: ${paths.join(", ")}`, said.content].filter(Boolean).join("\n\n") };
}

function isOpenedByCode({ use, isDeleted }) {
  return isForPython(use) && !isDeleted;
}

function responseFormat(schema) {
  return { type: "json_schema", json_schema: { name: "answer", schema, strict: true } };
}

export function wireMessage(said) {
  if (said.role === "tool") return { role: "tool", tool_call_id: said.toolCallId, content: said.content };
  if (said.role === "user") return { role: "user", content: userContent(said) };
  const wire = { role: said.role, content: said.content };
  if (said.reasoning) wire.reasoning_content = said.reasoning;
  if (said.toolCalls.length > 0) wire.tool_calls = said.toolCalls.map(wireCall);
  return wire;
}

function userContent({ content, images, files }) {
  const parts = [...images.filter(({ url }) => kindOfUrl(url) !== "sound").map(partOfUrl), ...files.filter(isRead).map(partOfFile)];
  if (parts.length === 0) return content;
  return content ? [...parts, { type: "text", text: content }] : parts;
}

function wireCall({ id, name, arguments: text }) {
  return { id, type: "function", function: { name, arguments: text } };
}
