// Answers that are being made, one for each conversation: their beginnings, their ends, and the calls of built-in tools
// that follow by themselves. Other conversations can be looked at meanwhile.

import { announce } from "../announcer.js";
import { translate } from "../texts/texts.js";
import { BUILTIN_NAMES, runBuiltin } from "../tools/builtin.js";
import { streamAnswer } from "./answer.js";
import { message } from "./conversation.js";
import { bodyFor } from "./request.js";

const MAX_TOOL_ROUNDS = 8; // answers in a row that built-in tools make by themselves

export class RunningAnswers {
  #runs = new Map(); // what ends the answer that is being made for a conversation

  /**
   * `view` is told of a conversation whose answer begins (`onBegin`), gets more text (`onDelta`, with the node and what
   * is new) or ends (`onEnd`). `save` stores a conversation.
   */
  constructor({ api, settings, view, save }) {
    Object.assign(this, { api, settings, view, save });
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

  /**
   * Asks for an answer behind the last message. It goes on with the message `continued`, where there is one. `model` makes
   * the answer in the place of the conversation's own.
   */
  async answer(conversation, { continued = null, round = 0, model = null } = {}) {
    const own = this.settings.of(conversation);
    const settings = model === null ? own : own.withModel(model);
    const body = bodyFor(settings, conversation.path(), continued);
    const begun = continued === null ? {} : { content: continued.content, reasoning: continued.reasoning };
    const node = conversation.add(conversation.activeLeaf, message("assistant", { model: settings.model.name, schema: settings.schema, ...begun }));
    const controller = new AbortController();
    conversation.running = node;
    this.#runs.set(conversation, controller);
    this.view.onBegin(conversation);
    announce(translate("answer.begins"));
    this.save(conversation); // what was asked outlives the page, whatever becomes of the answer
    await streamAnswer(this.api, body, {
      signal: controller.signal,
      into: node.message,
      onDelta: (_, delta) => this.view.onDelta(conversation, node, delta),
    });
    conversation.running = null;
    this.#runs.delete(conversation);
    conversation.updated = Date.now();
    this.view.onEnd(conversation);
    tellEnd(node.message);
    await this.save(conversation);
    this.#runTools(conversation, node, { settings, round, model });
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
