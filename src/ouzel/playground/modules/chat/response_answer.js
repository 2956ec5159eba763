// An answer from the Responses API, where the server runs tools itself: its events go into a message.

import { sentText } from "../api.js";
import { translate } from "../texts/texts.js";
import { canBeCited, canBeShown } from "./readable.js";

const TEXT = ["response.output_text.delta", "response.refusal.delta"];
const REASONING = ["response.reasoning_text.delta", "response.reasoning_summary_text.delta"]; // a server has one of them
const HOSTED = ["mcp_list_tools", "mcp_call", "mcp_approval_request", "web_search_call", "file_search_call", "code_interpreter_call", "shell_call", "shell_call_output"];
const MARKER = /^【\d{1,6}】/; // by which the text names a source
const MAX_MARKER = 8; // characters
const MAX_ITEMS = 1000; // of an answer, of each kind
const HALF = /[\ud800-\udfff]/;
const UNKNOWN_EFFECT = "The call was stopped. It is unknown whether it had an effect.";

/** Tells whether an item belongs to a tool that the server runs. */
export function isHosted(item) {
  return HOSTED.includes(item.type);
}

/** Takes the events of one response into a message. `clock` measures the times of tokens. */
export class ResponseReader {
  #isMessageOpen = false;
  #textStart = 0; // of the open message, in the text of all of them
  #numEarlier = 0; // citations of the messages before it
  #calls = new Map(); // calls of functions by the ids of their items

  constructor(into, clock, onDelta) {
    Object.assign(this, { into, clock, onDelta });
  }

  take(event) {
    const { into, clock } = this;
    let [content, reasoning] = ["", ""];
    if (TEXT.includes(event.type)) {
      const isSecond = !this.#isMessageOpen && into.content !== ""; // two messages are two paragraphs
      if (!this.#isMessageOpen) this.#openMessage(isSecond ? 2 : 0);
      content = (isSecond ? "\n\n" : "") + event.delta;
      if (event.logprobs?.length > 0) (into.tokens ??= []).push(...event.logprobs.map(toToken));
    } else if (REASONING.includes(event.type)) reasoning = event.delta;
    else if (event.type === "response.output_item.added" && isHosted(event.item)) this.#addHosted(event.item);
    else if (event.type === "response.output_item.added" && event.item.type === "function_call") this.#openCall(event.item);
    else if (event.type === "response.function_call_arguments.delta") this.#extendCall(event);
    else if (event.type === "response.mcp_call_arguments.done") this.#change(event.item_id, { arguments: String(event.arguments ?? "") });
    else if (event.type === "response.output_text.annotation.added") this.#cite(event.annotation);
    else if (event.type === "response.output_item.done") this.#endItem(event.item);
    else if (["response.completed", "response.incomplete"].includes(event.type)) this.#end(event.response);
    else if (event.type === "response.failed") throw new Error(sentText(event.response.error?.message) ?? translate("answer.responseFailed"));
    else if (event.type === "error") throw new Error(sentText(event.message ?? event.error?.message) ?? translate("answer.responseFailed"));
    else return;
    if (content || reasoning) clock.tick();
    into.content += content;
    into.reasoning += reasoning;
    this.onDelta(into, { content, reasoning });
  }

  #openMessage(numBlank) {
    const { content, citations } = this.into;
    this.#isMessageOpen = true;
    this.#textStart = content.length + numBlank;
    this.#numEarlier = citations.length;
  }

  #cite(annotation) {
    const text = this.into.content.slice(this.#textStart);
    this.into.citations.push(...checked(citationsOf({ content: [{ text, annotations: [annotation] }] }), canBeCited));
  }

  #addHosted(item) {
    const { hosted } = this.into;
    hosted.push(...checked([item], canBeShown));
    if (hosted.length > MAX_ITEMS) throw new Error(translate("answer.unreadable"));
  }

  #openCall(item) {
    const call = callOf(item);
    this.#calls.set(item.id, call);
    if (this.into.toolCalls.push(call) > MAX_ITEMS) throw new Error(translate("answer.unreadable"));
    return call;
  }

  #extendCall({ item_id: id, delta }) {
    const call = this.#calls.get(id);
    if (call !== undefined) call.arguments += delta;
    this.clock.tick();
  }

  #change(id, changes) {
    const { hosted } = this.into;
    const index = hosted.findIndex((item) => item.id === id);
    if (index >= 0) hosted[index] = { ...hosted[index], ...changes };
    return index >= 0;
  }

  #endItem(item) {
    const { into } = this;
    if (isHosted(item)) {
      checked([item], canBeShown);
      if (!this.#change(item.id, item)) this.#addHosted(item);
    } else if (item.type === "function_call") {
      Object.assign(this.#calls.get(item.id) ?? this.#openCall(item), callOf(item));
      this.clock.tick();
    } else if (item.type === "message") {
      if (!this.#isMessageOpen) this.#openMessage(0);
      into.citations.splice(this.#numEarlier, Infinity, ...checked(citationsOf(item), canBeCited)); // of which each was told before, too
      this.#isMessageOpen = false;
    }
  }

  #end({ status, usage, incomplete_details: details }) {
    const { into, clock } = this;
    if (status === "cancelled") into.finishReason = "stopped";
    else if (details) into.finishReason = details.reason === "content_filter" ? "content_filter" : "length";
    else into.finishReason = into.toolCalls.length > 0 ? "tool_calls" : "stop";
    if (!usage) return;
    clock.usage = { completion_tokens: usage.output_tokens, prompt_tokens: usage.input_tokens, prompt_tokens_details: usage.input_tokens_details };
  }
}

/**
 * Makes failed calls of those that a broken answer leaves open, so that no later request runs them again: calls that
 * have begun, and calls that `input` approves. Unfinished calls of other tools may run twice, and are dropped.
 */
export function failOpenCalls(into, input) {
  const begun = new Set(into.hosted.map((item) => item.approval_request_id).filter(Boolean));
  const isEarlier = (id) => input.some((item) => item.type === "mcp_call" && item.approval_request_id === id);
  const approved = new Set(input.filter((item) => item.type === "mcp_approval_response" && item.approve).map((item) => item.approval_request_id));
  const isOpen = ({ type, id }) => type === "mcp_approval_request" && approved.has(id) && !begun.has(id) && !isEarlier(id);
  const open = input.filter(isOpen).map(({ id, name, server_label: label, arguments: text }) => ({
    type: "mcp_call",
    id: `mcp_${id}`,
    name,
    server_label: label,
    arguments: text,
    approval_request_id: id,
  }));
  const isRunning = ({ type, status }) => type !== "mcp_list_tools" && ["in_progress", "calling", "searching", "interpreting"].includes(status);
  const kept = into.hosted.filter((item) => item.type === "mcp_call" || !isRunning(item));
  into.hosted = [...kept, ...open].map((item) => (open.includes(item) || isRunning(item) ? failed(item) : item));
}

function failed(call) {
  return { ...call, status: "failed", error: { type: "mcp_tool_execution_error", content: [{ type: "text", text: UNKNOWN_EFFECT }] } };
}

/** Returns the citations of a message. The marker is the part of the text, such as 【1】, that names the source. */
export function citationsOf({ content }) {
  const parts = Array.isArray(content) ? content : [];
  return parts.flatMap(({ text, annotations }) => {
    const characters = HALF.test(text ?? "") ? [...text] : (text ?? ""); // the API counts characters, and JavaScript halves of some
    return (annotations ?? []).map((annotation) => {
      const { start_index: from, end_index: to, index } = annotation;
      const marked = to === undefined ? characters.slice(index ?? Infinity, (index ?? 0) + MAX_MARKER) : characters.slice(from, to);
      return { ...annotation, marker: MARKER.exec(typeof marked === "string" ? marked : marked.join(""))?.[0] ?? "" };
    });
  });
}

/** Returns the things. Throws where the page cannot show one of them. */
function checked(things, isReadable) {
  if (!things.every(isReadable)) throw new Error(translate("answer.unreadable"));
  return things;
}

function callOf({ call_id: id, name, arguments: text }) {
  return { id: String(id ?? ""), name: String(name ?? ""), arguments: String(text ?? "") };
}

/** Returns a token with its log probability, from either API. */
export function toToken({ token, logprob, top_logprobs: alternatives }) {
  return { ...probable(token, logprob), alternatives: (alternatives ?? []).map((each) => probable(each.token, each.logprob)) };
}

function probable(token, logprob) {
  return { text: String(token ?? ""), logprob: Number(logprob) };
}
