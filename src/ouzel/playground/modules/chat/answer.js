// One answer while it streams: chunks go into a message, and the times of their arrival into its figures.

import { BROKEN_OFF } from "../api.js";
import { message } from "./conversation.js";
import { ResponseReader, failOpenCalls } from "./response_answer.js";

// The rate of an answer is that between its first and last token, unless these came too close together to measure it, or
// tokens were held back, as those of calls are until they can be read: then it is that since the request was sent.
const MIN_STREAMED_MS = 100;
const MAX_TOKENS_PER_DELTA = 8;

/**
 * Streams an answer into a message and returns it. `onDelta` gets the message and what was new:
 * `{ content, reasoning }`. Aborting the signal ends it; what came until then stays.
 */
export async function streamAnswer(api, body, { signal, onDelta, into = message("assistant") }) {
  const clock = new Clock();
  const isResponse = body.input !== undefined;
  try {
    if (isResponse) {
      const reader = new ResponseReader(into, clock, onDelta);
      for await (const event of api.stream("v1/responses", body, signal)) reader.take(event);
    } else {
      for await (const chunk of api.stream("v1/chat/completions", body, signal)) takeChunk(into, chunk, clock, onDelta);
    }
    if (into.finishReason === null) throw new Error(BROKEN_OFF);
  } catch (error) {
    if (error.name === "AbortError") into.finishReason = "stopped";
    else into.error = { message: error.message, field: error.field ?? null, status: error.status ?? 0 };
    if (isResponse && !(error.status > 0)) failOpenCalls(into, body.input); // a refused request runs nothing
  }
  into.figures = clock.figures(into.finishReason === "stopped");
  return into;
}

function takeChunk(into, { error, choices, usage }, clock, onDelta) {
  if (error) throw new Error(error.message);
  if (choices[0]) takeChoice(into, choices[0], clock, onDelta);
  if (usage) clock.usage = usage;
}

function takeChoice(into, { delta, logprobs, finish_reason: finishReason }, clock, onDelta) {
  const content = delta.content ?? "";
  const reasoning = delta.reasoning_content ?? "";
  if (content || reasoning || delta.tool_calls) clock.tick();
  into.content += content;
  into.reasoning += reasoning;
  for (const call of delta.tool_calls ?? []) takeCall(into.toolCalls, call);
  if (logprobs?.content) (into.tokens ??= []).push(...logprobs.content.map(toToken));
  if (finishReason) into.finishReason = finishReason;
  onDelta(into, { content, reasoning });
}

function takeCall(calls, { index, id, function: called }) {
  calls[index] ??= { id: "", name: "", arguments: "" };
  const call = calls[index];
  if (id) call.id = id;
  if (called?.name) call.name += called.name;
  call.arguments += called?.arguments ?? "";
}

function toToken({ token, logprob, top_logprobs: alternatives }) {
  return { text: token, logprob, alternatives: alternatives.map((each) => ({ text: each.token, logprob: each.logprob })) };
}

/** Times are in milliseconds since the request was sent. */
class Clock {
  #sent = performance.now();
  #first = null;
  #last = null;
  #numDeltas = 0;
  usage = null;

  tick() {
    this.#last = performance.now() - this.#sent;
    this.#first ??= this.#last;
    this.#numDeltas += 1;
  }

  /** `isCounted`: nobody tells how many tokens a stopped answer had; its deltas are counted. */
  figures(isCounted) {
    if (this.#first === null) return null;
    const numTokens = this.usage?.completion_tokens ?? this.#numDeltas;
    const streamed = this.#last - this.#first;
    const isMeasured = streamed >= MIN_STREAMED_MS && numTokens <= this.#numDeltas * MAX_TOKENS_PER_DELTA;
    return {
      timeToFirstToken: this.#first,
      tokensPerSecond: isMeasured ? ((numTokens - 1) * 1000) / streamed : (numTokens * 1000) / this.#last,
      completionTokens: numTokens,
      promptTokens: this.usage?.prompt_tokens ?? null,
      cachedTokens: this.usage?.prompt_tokens_details?.cached_tokens ?? null,
      isCounted: isCounted || this.usage === null,
    };
  }
}
