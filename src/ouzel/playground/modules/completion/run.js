// One run of a completion while it streams: its text, its tokens, and how it ended.

import { BROKEN_OFF } from "../api.js";

const CHAT_ONLY = ["enable_thinking", "thinking_token_budget"]; // settings that belong to chats
/** How long a run may be where the settings do not say: the API's own default is shorter than a sentence. */
export const DEFAULT_MAX_TOKENS = 256;

/** Returns the body for POST /v1/completions. With `suffix`, the model fills in what stands before it. */
export function completionBody({ model, prompt, suffix = "", settings }) {
  const parameters = { max_tokens: DEFAULT_MAX_TOKENS, ...settings.parameters };
  for (const name of CHAT_ONLY) delete parameters[name];
  const body = { model, prompt, ...parameters };
  if (suffix !== "") body.suffix = suffix;
  if (settings.topLogprobs !== null) body.logprobs = settings.topLogprobs;
  return { ...body, stream: true, stream_options: { include_usage: true } };
}

/**
 * Streams a completion, and returns `tokens` (where they were asked for), `numTokens` (null where nobody tells),
 * `durationMs`, `finishReason` and `error` (a message, or null). `onText` gets each piece of text.
 */
export async function runCompletion(api, body, { signal, onText }) {
  const run = { tokens: [], numTokens: null, durationMs: 0, finishReason: null, error: null };
  const begun = performance.now();
  try {
    for await (const chunk of api.stream("v1/completions", body, signal)) takeChunk(run, chunk, onText);
    if (run.finishReason === null) throw new Error(BROKEN_OFF);
  } catch (error) {
    if (error.name === "AbortError") run.finishReason = "stopped";
    else run.error = error.message;
  }
  run.durationMs = performance.now() - begun;
  return run;
}

function takeChunk(run, { error, choices, usage }, onText) {
  if (error) throw new Error(error.message);
  if (usage) run.numTokens = usage.completion_tokens;
  const [choice] = choices;
  if (choice === undefined) return;
  if (choice.text) onText(choice.text);
  if (choice.logprobs) run.tokens.push(...toTokens(choice.logprobs));
  if (choice.finish_reason) run.finishReason = choice.finish_reason;
}

function toTokens({ tokens, token_logprobs: logprobs, top_logprobs: tops }) {
  return tokens.map((text, index) => ({
    text,
    logprob: logprobs[index] ?? 0,
    alternatives: Object.entries(tops?.[index] ?? {}).map(([other, logprob]) => ({ text: other, logprob })),
  }));
}
