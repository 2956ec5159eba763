// One answer while it streams: chunks go into a message, and the times of their arrival into its figures.

import { ApiError, BROKEN_OFF, sentText } from "../api.js";
import { untilStaying } from "../leaving.js";
import { translate } from "../texts/texts.js";
import { backgroundEvents } from "./background.js";
import { message } from "./conversation.js";
import { ResponseReader, failOpenCalls, toToken } from "./response_answer.js";
import { Tries, isBusy, isUnreached } from "./tries.js";

// The rate of an answer is that between its first and last token, unless these came too close together to measure it, or
// tokens were held back, as those of calls are until they can be read: then it is that since the request was sent.
const MIN_STREAMED_MS = 100;
const MAX_TOKENS_PER_DELTA = 8;
const MAX_CALLS = 1000; // of an answer
const UNREADABLE = [TypeError, RangeError, SyntaxError]; // what comes of events of another form
const ignore = () => {};

/**
 * Streams an answer into a message and returns it. `onDelta` gets the message and what was new:
 * `{ content, reasoning }`. Aborting the signal ends it; what came until then stays. `onWait` gets each wait for another
 * try (tries.js), and null at its end; `onId` gets the id of a response in the background.
 */
export function streamAnswer(api, body, { signal, onDelta, into = message("assistant"), onWait = ignore, onId = ignore }) {
  const clock = new Clock();
  const noteWait = (wait) => {
    clock.begin();
    onWait(wait);
  };
  const tries = new Tries({ signal, onWait: noteWait });
  const mayRepeat = (error) => isBusy(error) || (isUnreached(error) && !runsTools(body));
  const filling = new Filling({ into, clock, onDelta, input: body.input });
  if (!body.background) return filling.fill(openedEvents(api, body, { signal, tries, mayRepeat }));
  return filling.fill(backgroundEvents(api, { body, signal, tries, mayRepeat, onId: (id) => onId((filling.id = id)) }));
}

/**
 * Takes the answer of a response that an earlier page began, from its first word on. `onFirst` is called before that
 * comes: until then the message may hold what is known of the answer. `input` are the items before it.
 */
export function resumeAnswer(api, id, { signal, onDelta, into, onWait, onFirst, input }) {
  const tries = new Tries({ signal, onWait });
  const filling = new Filling({ into, clock: new Clock({ isLate: true }), onDelta, input, id, onFirst });
  return filling.fill(backgroundEvents(api, { id, signal, tries }));
}

async function* openedEvents(api, body, { signal, tries, mayRepeat }) {
  const path = body.input === undefined ? "v1/chat/completions" : "v1/responses";
  yield* await tries.run(() => api.openStream(path, { body, signal }), mayRepeat);
}

/** Tells whether the server may run tools for a request; then it is sent again only where the server has refused it. */
function runsTools({ input = [], tools = [] }) {
  return tools.some(({ type }) => type !== "function") || input.some(({ type }) => type === "mcp_approval_response");
}

/** The message of one answer while its events come. `input` are the items of a request to the Responses API. */
class Filling {
  #hasBegun = false;

  constructor({ into, clock, onDelta, input = null, id = null, onFirst = ignore }) {
    Object.assign(this, { into, clock, onDelta, input, id, onFirst });
  }

  async fill(events) {
    const { into, clock, onDelta } = this;
    const reader = new ResponseReader(into, clock, onDelta);
    try {
      for await (const event of events) {
        if (!this.#hasBegun) this.onFirst();
        this.#hasBegun = true;
        if (this.input === null) takeChunk(into, event, clock, onDelta);
        else reader.take(event);
      }
      if (into.finishReason === null) throw new Error(BROKEN_OFF);
    } catch (error) {
      await untilStaying();
      if (error.name === "AbortError") into.finishReason = "stopped";
      else into.error = this.#describe(error);
      const isRefused = error.status > 0 && !this.#hasBegun && this.id === null; // it runs nothing then
      if (this.input !== null && !isRefused && into.error?.responseId === undefined) failOpenCalls(into, this.input);
    }
    if (into.toolCalls.includes(undefined)) into.toolCalls.splice(0, Infinity, ...into.toolCalls.filter(Boolean));
    into.figures = clock.figures(into.finishReason === "stopped");
    return into;
  }

  /** An error with a `responseId` leaves an answer that the server may still have, or still be making. */
  #describe(error) {
    const { field = null, status = 0 } = error;
    const text = UNREADABLE.some((kind) => error instanceof kind) ? translate("answer.unreadable") : sentText(error.message);
    if (this.id !== null && status === 404) return { message: translate("answer.isGone"), field, status };
    const isLost = this.id !== null && error instanceof ApiError && (isUnreached(error) || isBusy(error));
    return { message: text, field, status, ...(isLost ? { responseId: this.id } : {}) };
  }
}

function takeChunk(into, { error, choices, usage }, clock, onDelta) {
  if (error) throw new Error(typeof error === "string" ? error : sentText(error.message) ?? translate("answer.responseFailed"));
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
  if (!(Number.isInteger(index) && index >= 0 && index < MAX_CALLS)) throw new Error(translate("answer.unreadable"));
  calls[index] ??= { id: "", name: "", arguments: "" };
  const call = calls[index];
  if (id) call.id = String(id);
  if (called?.name) call.name += called.name;
  call.arguments += called?.arguments ?? "";
}

/** Times are in milliseconds since the request was sent. `isLate`: nobody looked on when the answer began. */
class Clock {
  #sent = performance.now();
  #first = null;
  #last = null;
  #numDeltas = 0;
  usage = null;

  constructor({ isLate = false } = {}) {
    this.isLate = isLate;
  }

  /** Notes that the request is sent, which may not be the first time. */
  begin() {
    if (this.#first === null) this.#sent = performance.now();
  }

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
      timeToFirstToken: this.isLate ? null : this.#first,
      tokensPerSecond: this.isLate ? null : isMeasured ? ((numTokens - 1) * 1000) / streamed : (numTokens * 1000) / this.#last,
      completionTokens: numTokens,
      promptTokens: this.usage?.prompt_tokens ?? null,
      cachedTokens: this.usage?.prompt_tokens_details?.cached_tokens ?? null,
      isCounted: isCounted || this.usage === null,
    };
  }
}
