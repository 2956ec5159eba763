// The model makes a title after the first answer, while nobody waits for it. The request continues the conversation, so
// that the server has computed nearly all of it already.

import { chatBody } from "../chat/request.js";

const MAX_TOKENS = 24;
const MAX_TITLE = 80; // characters; a longer one is no title
const MIN_TOKENS_PER_S = 10; // of the answer: a slower model would be busy for seconds
const ASK = "Write a short title for this conversation, in its language, of at most six words. Write only the title: no quotation marks, no explanation, no other line of text.";
const QUOTES = /^["'“”„«»‘’\s]+|["'“”„«»‘’\s.]+$/g;

export class Titles {
  #due = null; // the conversation whose title is to be made
  #controller = null; // what ends the request
  #tried = new WeakSet(); // conversations that are asked about only once
  #busy = new Set(); // conversations with an answer that is being made

  constructor({ api, settings, library, chat }) {
    Object.assign(this, { api, settings, library, chat });
  }

  /** Takes a conversation that was saved: an answer begins or has ended. A person's answer always goes first. */
  take(conversation) {
    if (conversation.running !== null) {
      this.#busy.add(conversation);
      this.#controller?.abort();
      return;
    }
    this.#busy.delete(conversation);
    if (!this.#tried.has(conversation) && this.#isDue(conversation)) {
      this.#tried.add(conversation);
      this.#due = conversation;
    }
    if (this.#due !== null && this.#busy.size === 0 && this.#controller === null) this.#make(this.#due);
  }

  #isDue(conversation) {
    const said = conversation.path().map(({ message }) => message);
    if (!this.settings.standard.own.makesTitles || conversation.nodes.length !== 2 || said.length !== 2) return false;
    const [question, { error, finishReason, content, figures }] = said;
    const isPlain = question.images.length + question.files.length === 0;
    return isPlain && error === null && finishReason === "stop" && content !== "" && figures?.tokensPerSecond >= MIN_TOKENS_PER_S;
  }

  async #make(conversation) {
    this.#controller = new AbortController();
    const { key, title } = conversation;
    try {
      const answer = await this.api.post("v1/chat/completions", this.#body(conversation), this.#controller.signal);
      this.#due = null;
      const made = titleIn(answer);
      if (made !== null && conversation.title === title && conversation.key === key) await this.#keep(conversation, made);
    } catch (error) {
      if (error.name !== "AbortError") this.#due = null; // a refused request is not sent again
    } finally {
      this.#controller = null;
    }
  }

  async #keep(conversation, title) {
    conversation.title = title;
    await this.library.rename(conversation.key, title, { isNamed: false });
    conversation.title = this.library.records.get(conversation.key)?.title ?? title; // a person may have given one meanwhile
    this.chat.view.onState();
  }

  #body(conversation) {
    const { model, values, tools } = this.settings.of(conversation);
    const messages = [...conversation.path().map(({ message }) => message), { role: "user", content: ASK, images: [], files: [] }];
    const settings = { parameters: {}, schema: null, topLogprobs: null };
    const { stream, stream_options, ...body } = chatBody({ model: model.name, system: values.system, messages, settings, tools });
    return { ...body, max_tokens: MAX_TOKENS, temperature: 0, enable_thinking: false, ...(body.tools ? { tool_choice: "none" } : {}) };
  }
}

/** Returns the title of an answer; null where it looks like none. */
function titleIn({ choices }) {
  const { message, finish_reason: finishReason } = choices[0];
  const text = (message.content ?? "").trim();
  const title = text.replace(QUOTES, "");
  const isTitle = finishReason === "stop" && title !== "" && !/[\r\n]/.test(text) && [...title].length <= MAX_TITLE;
  return isTitle ? title : null;
}
