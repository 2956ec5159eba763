// Answers that are being made, one for each conversation: their beginnings, their ends, and the calls of built-in tools
// that follow by themselves. Other conversations can be looked at meanwhile, and a page that is loaded again goes on.

import { announce } from "../announcer.js";
import { itemsOf } from "../storage/items.js";
import { isSettled } from "../storage/server_keeper.js";
import { translate } from "../texts/texts.js";
import { BUILTIN_NAMES, runBuiltin } from "../tools/builtin.js";
import { resumeAnswer, streamAnswer } from "./answer.js";
import { pathOfResponse } from "./background.js";
import { message } from "./conversation.js";
import { KeptAnswer, forgetAnswer, keptAnswer } from "./kept_answers.js";
import { bodyFor } from "./request.js";
import { claim, hold, whenFree } from "./tabs.js";
import { isBusy } from "./tries.js";

const MAX_TOOL_ROUNDS = 8; // answers in a row that built-in tools make by themselves

export class RunningAnswers {
  #runs = new Map(); // what ends the answer that is being made for a conversation
  #views = [];

  /** `save` stores a conversation. All chats of the page share the answers: a conversation may go from one to another meanwhile. */
  constructor({ api, settings, save }) {
    Object.assign(this, { api, settings, save });
  }

  /**
   * `view` is told of a conversation whose answer begins (`onBegin`), gets more text (`onDelta`, with the node and what
   * is new), waits for another try (`onWait`), is read again from its first word (`onRestart`, with the node) or changes
   * otherwise (`onChange`), and of one that another tab has changed (`onChangeElsewhere`).
   */
  watch(view) {
    this.#views.push(view);
  }

  #tell(event, ...values) {
    for (const view of this.#views) view[event](...values);
  }

  has(conversation) {
    return this.#runs.has(conversation);
  }

  /** Returns the conversation of this key, where an answer is being made for it. */
  held(key) {
    return [...this.#runs.keys()].find((conversation) => conversation.key === key);
  }

  stop(conversation) {
    this.#runs.get(conversation)?.abort();
  }

  /** Forgets the answer of a conversation that is deleted. */
  drop(key) {
    const kept = keptAnswer(key);
    if (kept?.responseId) this.api.deleteUnwatched(pathOfResponse(kept.responseId));
    forgetAnswer(key);
  }

  /**
   * Asks for an answer behind the last message. It goes on with the message `continued`, where there is one. `model` makes
   * the answer in the place of the conversation's own.
   */
  async answer(conversation, { continued = null, round = 0, model = null } = {}) {
    const { settings } = this.#choiceFor(conversation, model);
    const body = bodyFor(settings, conversation.path(), { continued, isBackground: this.settings.keepsOnServer });
    const begun = continued === null ? {} : { content: continued.content, reasoning: continued.reasoning };
    const dropped = this.#dropLost(conversation.key);
    const node = conversation.add(conversation.activeLeaf, message("assistant", { model: settings.model.name, schema: settings.schema, ...begun }));
    announce(translate("answer.begins"));
    await this.#make(conversation, node, { settings, round, model }, (options, kept) => {
      this.save(conversation).then(() => dropped).then(options.keep); // what was asked outlives the page
      return streamAnswer(this.api, body, { ...options, onId: (id) => (kept.responseId = id) });
    });
  }

  /** Forgets an answer that got lost on its way; one that another tab is making is left to that tab. */
  async #dropLost(key) {
    if (key !== undefined) await claim(key, () => this.drop(key));
  }

  /** Goes on with the answer that an earlier page left, where there is one and no other tab is making it. */
  async resume(conversation) {
    const { key } = conversation;
    const kept = keptAnswer(key);
    if (kept === null || this.has(conversation)) return;
    conversation.answeredBy = "page";
    if (await claim(key, () => this.#resume(conversation, kept))) return;
    conversation.answeredBy = "tab";
    this.#tell("onChange", conversation);
    await whenFree(key);
    this.#tell("onChangeElsewhere", conversation);
  }

  /** Tries once more to get the rest of an answer that the server still has, or is still making. */
  resumeNode(conversation, node) {
    conversation.activeLeaf = node.id;
    const { responseId } = node.message.error;
    return this.#continueResponse(conversation, node, responseId);
  }

  async #resume(conversation, { parent, numSiblings, responseId, said = {} }) {
    conversation.answeredBy = null;
    const stands = conversation.nodes.filter((node) => node.parent === parent).length;
    if (this.has(conversation)) return;
    if ((parent !== null && conversation.node(parent) === null) || stands !== numSiblings) this.drop(conversation.key); // it is stored
    else await this.#takeUp(conversation, { parent, responseId, said });
    this.#tell("onChange", conversation);
  }

  async #takeUp(conversation, { parent, responseId, said }) {
    const partial = message("assistant", said);
    if (responseId === null && !isSettled(partial)) return forgetAnswer(conversation.key);
    const node = conversation.add(parent, partial);
    if (responseId !== null) return this.#continueResponse(conversation, node, responseId);
    node.message.finishReason = "broken";
    await this.save(conversation);
    forgetAnswer(conversation.key);
  }

  async #continueResponse(conversation, node, responseId) {
    const { model, schema, error } = node.message;
    node.message.error = null;
    const input = conversation.path(node.parent).flatMap((each) => itemsOf(each.message));
    const onFirst = () => {
      Object.assign(node.message, message("assistant", { model, schema }));
      this.#tell("onRestart", conversation, node);
    };
    if (error !== null) this.#tell("onRestart", conversation, node);
    await this.#make(conversation, node, { ...this.#choiceFor(conversation, model), round: 0 }, (options, kept) => {
      kept.responseId = responseId;
      options.keep();
      return resumeAnswer(this.api, responseId, { ...options, onFirst, input });
    });
  }

  /** Returns the settings of an answer that a model makes, and the model where it is not the conversation's own. */
  #choiceFor(conversation, model) {
    const settings = this.settings.of(conversation);
    const isOther = model !== settings.model.name && settings.server.models.some(({ name }) => name === model); // it may be gone by now
    return isOther ? { settings: settings.withModel(model), model } : { settings, model: null };
  }

  /**
   * `stream` makes the answer, and `run` says how tools go on behind it. `stream` gets the options of streamAnswer with
   * `keep`, which is to be called once the conversation is stored, and the entry that keeps the answer from then on.
   */
  async #make(conversation, node, run, stream) {
    const controller = new AbortController();
    const kept = new KeptAnswer(conversation, node);
    conversation.running = node;
    this.#runs.set(conversation, controller);
    this.#tell("onBegin", conversation);
    const { promise: ended, resolve: end } = Promise.withResolvers();
    const keep = () => {
      kept.begin();
      if (kept.key !== null) hold(kept.key, ended);
    };
    await stream(
      {
        keep,
        signal: controller.signal,
        into: node.message,
        onDelta: (_, delta) => this.#tell("onDelta", conversation, node, delta),
        onWait: this.#waiting(conversation),
      },
      kept,
    );
    conversation.running = null;
    this.#runs.delete(conversation);
    conversation.updated = Date.now();
    this.#tell("onChange", conversation);
    tellEnd(node.message);
    await this.#settle(conversation, node.message, kept);
    end();
    this.#runTools(conversation, node, run);
  }

  /** Stores the conversation, which then has all that the server has of the response. */
  async #settle(conversation, { error, finishReason }, kept) {
    if (error?.responseId) return kept.pause();
    await this.save(conversation);
    kept.end();
    if (kept.responseId !== null && finishReason !== "stopped") this.api.deleteUnwatched(pathOfResponse(kept.responseId));
  }

  /** Shows waits for another try; the first one of an answer is told to screen readers. */
  #waiting(conversation) {
    let isTold = false;
    return (wait) => {
      conversation.waiting = wait;
      this.#tell("onWait", conversation);
      if (wait !== null && !isTold) announce(translate(isBusy(wait.error) ? "answer.serverIsBusy" : "answer.serverIsAway"));
      isTold = true;
    };
  }

  /** Calls of built-in tools alone are answered at once, where that is set. */
  #runTools(conversation, { id, message: said }, { settings, round, model }) {
    const node = conversation.node(id);
    const isOurs = said.toolCalls.length > 0 && !said.hosted.some(({ type }) => type === "mcp_approval_request") && said.toolCalls.every((call) => BUILTIN_NAMES.includes(call.name));
    const isDue = isOurs && said.finishReason === "tool_calls" && settings.values.runsBuiltinTools;
    if (!isDue || settings.faults.length > 0 || round >= MAX_TOOL_ROUNDS || this.has(conversation) || conversation.activeLeaf !== id) return;
    addResults(conversation, node, said.toolCalls.map(runBuiltin));
    this.answer(conversation, { round: round + 1, model });
  }
}

/** Adds the results of the calls of an answer, in their order. */
export function addResults(conversation, node, results) {
  node.message.toolCalls.forEach((call, index) => {
    conversation.add(conversation.activeLeaf, message("tool", { toolCallId: call.id, content: results[index] }));
  });
}

function tellEnd({ error, toolCalls, hosted, finishReason }) {
  if (error !== null) announce(translate("answer.failed", { why: error.message }));
  else if (finishReason === "stopped") announce(translate("answer.wasStopped"));
  else if (hosted.some(({ type }) => type === "mcp_approval_request")) announce(translate("answer.callWaits"));
  else announce(translate(toolCalls.length > 0 ? "answer.callsTool" : "answer.isComplete"));
}
