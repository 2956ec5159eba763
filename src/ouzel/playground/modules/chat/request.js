// A chat becomes the body of a request. Settings that are empty are not sent: the model's own defaults hold then.

import { itemsOf } from "../storage/items.js";
import { isPicture } from "./images.js";

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
export function responseBody({ model, system, messages, settings, tools, hosted }) {
  const { max_tokens: maxTokens, ...parameters } = settings.parameters;
  const body = { model, input: messages.flatMap(itemsOf), ...parameters };
  if (system) body.instructions = system;
  if (maxTokens !== undefined) body.max_output_tokens = maxTokens;
  body.tools = [...tools.map(({ function: called }) => ({ type: "function", ...called })), ...hosted];
  if (settings.schema !== null) body.text = { format: { type: "json_schema", ...responseFormat(settings.schema).json_schema } };
  const include = [];
  if (hosted.some(({ type }) => type === "code_interpreter")) include.push("code_interpreter_call.outputs");
  if (settings.topLogprobs !== null) {
    include.push("message.output_text.logprobs");
    body.top_logprobs = settings.topLogprobs;
  }
  if (include.length > 0) body.include = include;
  return { ...body, store: false, stream: true };
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

function userContent({ content, images }) {
  if (images.length === 0) return content;
  const parts = images.map(({ name, url }) => {
    if (isPicture(url)) return { type: "image_url", image_url: { url } };
    return { type: "file", file: { filename: name, file_data: url } };
  });
  return content ? [...parts, { type: "text", text: content }] : parts;
}

function wireCall({ id, name, arguments: text }) {
  return { id, type: "function", function: { name, arguments: text } };
}
