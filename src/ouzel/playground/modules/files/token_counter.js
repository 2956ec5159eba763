// The number of tokens that a text or a file takes of a model's context, from POST /v1/tokenize.

const PATH = "v1/tokenize";
const PROBE = "?"; // one token in the vocabularies of all models

export class TokenCounter {
  #last = { text: Promise.resolve(), file: Promise.resolve() }; // of each the last request: one waits for the other
  #around = new Map(); // by model, what its chat template writes around a message, as a number of tokens

  constructor(api) {
    this.api = api;
  }

  /** Returns `numTokens` of a text, of which only a sample is counted where it is long (contents.js). */
  async countText({ sample, scale }, model, signal) {
    const numTokens = await this.#count("text", { model: model.name, prompt: sample, add_special_tokens: false }, signal);
    return { numTokens: Math.round(numTokens * scale), isEstimate: scale > 1 };
  }

  /** Returns `numTokens` of a part of a message. The server decodes pictures, pages and videos for it, and keeps them. */
  async countPart(part, model, signal) {
    const numAll = await this.#count("file", this.#chat(model, [part]), signal);
    if (!this.#around.has(model.name)) {
      const numProbed = await this.#count("file", this.#chat(model, PROBE), signal);
      this.#around.set(model.name, numProbed - 1);
    }
    return { numTokens: Math.max(0, numAll - this.#around.get(model.name)), isEstimate: false };
  }

  #chat(model, content) {
    return { model: model.name, messages: [{ role: "user", content }] };
  }

  async #count(queue, body, signal) {
    const counting = this.#last[queue].then(() => {
      signal.throwIfAborted();
      return this.api.post(PATH, body, signal);
    });
    this.#last[queue] = counting.catch(() => {}); // whoever asked is told
    return (await counting).count;
  }
}
