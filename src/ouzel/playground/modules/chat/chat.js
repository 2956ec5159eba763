// What a person does with a chat: each action changes the conversation, shows it, and asks for an answer where one is due.

import { announce } from "../announcer.js";
import { showRequest } from "../dialogs/request_dialog.js";
import { deleteUploaded, downloadFromSandbox } from "../files/files_of_server.js";
import { shortName } from "../files/names.js";
import { PYTHON } from "../server.js";
import { isSettled } from "../storage/server_keeper.js";
import { translate } from "../texts/texts.js";
import { BUILTIN_NAMES, runBuiltin } from "../tools/builtin.js";
import { streamAnswer } from "./answer.js";
import { Conversation, message, titleOf } from "./conversation.js";
import { chatBody, responseBody } from "./request.js";
import { Thread } from "./thread.js";

const MAX_TOOL_ROUNDS = 8; // answers in a row that built-in tools make by themselves

export class Chat {
  #runs = new Map(); // what ends the answer that is being made for a conversation
  #conversation = new Conversation();
  #opening = null; // the key of a conversation that is to be shown once it has come

  /** `view.onState` is called when another conversation is shown, or an answer begins or ends. */
  constructor({ api, settings, library, view }) {
    Object.assign(this, { api, settings, library, view });
    this.thread = new Thread(view.container, this);
  }

  get current() {
    return this.#conversation;
  }

  get isAnswering() {
    return this.#runs.has(this.#conversation);
  }

  begin() {
    this.#show(new Conversation());
  }

  /** Shows the conversation of this key, unless another one is shown or an answer is asked for before it has come. */
  async open(key) {
    const opening = (this.#opening = { key });
    const loaded = this.#running(key) ?? (await this.library.load(key));
    if (opening === this.#opening) this.#show(this.#running(key) ?? loaded);
  }

  /** Returns the conversation of this key where the page holds it: it is shown, or an answer is being made for it. */
  held(key) {
    return this.#conversation.key === key ? this.#conversation : this.#running(key);
  }

  /** Ends what is being made for a conversation that is gone, and shows another in its place. */
  drop(key) {
    const conversation = this.held(key);
    this.#runs.get(conversation)?.abort();
    if (conversation === this.#conversation) this.begin();
  }

  /** `attached` has pictures and files. Returns false where nothing was sent, and what was written is to stay. */
  send(content, attached) {
    if (!this.#maySend() || !this.#canUse(attached.files)) return false;
    const conversation = this.#conversation;
    conversation.title ||= titleOf(content || attached.files[0]?.name || translate("answer.titleOfPicture"));
    conversation.add(this.#parentOfNext(conversation), message("user", { content, ...attached }));
    this.#answer(conversation);
    return true;
  }

  /**
   * Returns the id of the node behind which the next message of a person belongs. A message that got no answer stays in
   * a branch beside the next one: chat templates refuse two messages of a person in a row.
   */
  #parentOfNext(conversation) {
    const last = conversation.node(conversation.activeLeaf);
    const isFailed = last?.message.role === "assistant" && !isSettled(last.message);
    const asked = isFailed ? conversation.node(last.parent) : last;
    if (asked?.message.role === "user") return asked.parent;
    if (isFailed) conversation.remove(last);
    return conversation.activeLeaf;
  }

  stop() {
    this.#runs.get(this.#conversation)?.abort();
  }

  // What a person can do with one message.

  /** Returns false where nothing was done, and what was written is to stay. */
  edit(node, content, attached) {
    if (!this.#maySend()) return false;
    const conversation = this.#conversation;
    const { role, toolCallId } = node.message;
    if (role === "user" && content.trim() === "" && attached.images.length + attached.files.length === 0) return false;
    const rest = role === "tool" ? this.#resultsBehind(node) : [];
    conversation.add(node.parent, message(role, { content, ...attached, toolCallId }));
    for (const said of rest) conversation.add(conversation.activeLeaf, message("tool", { toolCallId: said.toolCallId, content: said.content }));
    if (role === "assistant") {
      this.#draw();
      this.#save(conversation);
    } else this.#answer(conversation);
    return true;
  }

  regenerate(node) {
    if (!this.#maySend()) return;
    const conversation = this.#conversation;
    if (isSettled(node.message)) conversation.activeLeaf = node.parent;
    else conversation.remove(node);
    this.#answer(conversation);
  }

  show(node) {
    this.#conversation.show(node);
    this.#draw();
    if (!this.isAnswering) this.#save(this.#conversation);
  }

  /** The answer goes on in a branch of its own: what is kept of a conversation never changes. */
  continueAnswer(node) {
    if (!this.#maySend()) return;
    this.#conversation.activeLeaf = node.parent;
    this.#answer(this.#conversation, { continued: node.message });
  }

  takeResults(node, results, round = 0) {
    if (!this.#maySend()) return;
    const conversation = this.#conversation;
    conversation.activeLeaf = node.id;
    this.#addResults(conversation, node, results);
    this.#answer(conversation, { round });
  }

  /** The server runs the calls that a person allows, and the model reads which ones are not allowed. */
  takeApprovals(node, approvals) {
    if (!this.#maySend()) return;
    const conversation = this.#conversation;
    conversation.add(node.id, message("approval", { approvals }));
    this.#answer(conversation);
  }

  /** Deletes a file from the server; the model reads it no more. */
  async deleteFile(file) {
    const conversation = this.#conversation;
    if (!(await deleteUploaded(this.api, file).catch((error) => this.view.notice(error.message)))) return;
    conversation.forget(file);
    this.thread.drawFiles();
    if (conversation.running === null) this.#save(conversation);
  }

  /** Gets a file out of a sandbox. */
  download = (file) => downloadFromSandbox(this.api, file).catch((error) => this.view.notice(error.message));

  /** Returns what tools of the server did until a message. */
  hostedUntil({ id }) {
    return this.#conversation.path(id).flatMap((node) => node.message.hosted);
  }

  showRequest(node) {
    if (this.settings.faults.length > 0) return this.#noticeFaults();
    showRequest(this.#body(this.#conversation.path(node.parent)));
  }

  /** Returns the results of the other calls of an answer, which one that is edited has behind it. */
  #resultsBehind(node) {
    const path = this.#conversation.path();
    const behind = path.slice(path.indexOf(node) + 1).map((each) => each.message);
    const end = behind.findIndex((said) => said.role !== "tool");
    return end < 0 ? behind : behind.slice(0, end);
  }

  #addResults(conversation, node, results) {
    node.message.toolCalls.forEach((call, index) => {
      conversation.add(conversation.activeLeaf, message("tool", { toolCallId: call.id, content: results[index] }));
    });
  }

  #maySend() {
    if (this.isAnswering) {
      this.view.notice(translate("answer.isBeingMade"), () => this.isAnswering);
      return false;
    }
    const { faults, model } = this.settings;
    if (model.whyNoChat !== "") {
      this.view.notice(model.whyNoChat, () => this.settings.model === model);
      return false;
    }
    if (faults.length > 0) this.#noticeFaults((why) => translate("answer.nothingSent", { why }));
    return faults.length === 0;
  }

  /** Turns on the tool that files need. Returns false where files are for a search, and none is chosen. */
  #canUse(files) {
    const { settings } = this;
    const forSearch = files.find(({ use }) => use === "search");
    if (forSearch !== undefined && settings.values.collection === "") {
      this.view.notice(translate("answer.onlyForSearches", { name: shortName(forSearch.name) }));
      return false;
    }
    if (files.some(({ use }) => use === "python") && !settings.values.hostedTools.includes(PYTHON)) this.view.turnOn(PYTHON);
    return true;
  }

  #noticeFaults(wrap = (why) => why) {
    const text = this.settings.faults.join("\n");
    this.view.notice(wrap(text), () => this.settings.faults.join("\n") === text);
  }

  #body(path, continued = null) {
    const settled = path.map((node) => node.message).filter((said) => said.role !== "assistant" || isSettled(said));
    const messages = settled.filter((said, index) => said.role !== "user" || settled[index + 1]?.role !== "user"); // older conversations may have two in a row
    const { model, values, tools } = this.settings;
    const settings = { parameters: this.settings.parameters, schema: this.settings.schema, topLogprobs: this.settings.topLogprobs };
    const hosted = this.settings.hostedEntries;
    if (continued === null && (hosted.length > 0 || messages.some((said) => said.hosted.length > 0))) {
      return responseBody({ model: model.name, system: values.system, messages, settings, tools, hosted });
    }
    const all = [...messages.filter(({ role }) => role !== "approval"), ...(continued === null ? [] : [continued])];
    return chatBody({ model: model.name, system: values.system, messages: all, settings, tools, continued: continued !== null });
  }

  async #answer(conversation, { continued = null, round = 0 } = {}) {
    const body = this.#body(conversation.path(), continued);
    const begun = continued === null ? {} : { content: continued.content, reasoning: continued.reasoning };
    const node = conversation.add(conversation.activeLeaf, message("assistant", { schema: this.settings.schema, ...begun }));
    const controller = new AbortController();
    conversation.running = node;
    this.#runs.set(conversation, controller);
    if (conversation === this.#conversation) this.#opening = null;
    this.#draw();
    announce(translate("answer.begins"));
    this.#save(conversation); // what was asked outlives the page, whatever becomes of the answer
    await streamAnswer(this.api, body, {
      signal: controller.signal,
      into: node.message,
      onDelta: (_, delta) => this.#append(conversation, node, delta),
    });
    conversation.running = null;
    this.#runs.delete(conversation);
    conversation.updated = Date.now();
    if (conversation === this.#conversation) this.#draw();
    this.#tellEnd(node.message);
    await this.#save(conversation);
    this.#runTools(conversation, node, round);
  }

  #append(conversation, node, delta) {
    if (conversation === this.#conversation) this.thread.append(node, delta);
  }

  /** Calls of built-in tools alone are answered at once, where that is set. */
  #runTools(conversation, { id, message: said }, round) {
    const node = conversation.node(id);
    const isOurs = said.toolCalls.length > 0 && !said.hosted.some(({ type }) => type === "mcp_approval_request") && said.toolCalls.every((call) => BUILTIN_NAMES.includes(call.name));
    const isDue = isOurs && said.finishReason === "tool_calls" && this.settings.values.runsBuiltinTools;
    if (!isDue || this.settings.faults.length > 0 || round >= MAX_TOOL_ROUNDS || this.#runs.has(conversation) || conversation.activeLeaf !== id) return;
    this.#addResults(conversation, node, said.toolCalls.map(runBuiltin));
    this.#answer(conversation, { round: round + 1 });
  }

  #tellEnd({ error, toolCalls, hosted, finishReason }) {
    if (error !== null) announce(translate("answer.failed", { why: error.message }));
    else if (finishReason === "stopped") announce(translate("answer.wasStopped"));
    else if (hosted.some(({ type }) => type === "mcp_approval_request")) announce(translate("answer.callWaits"));
    else announce(translate(toolCalls.length > 0 ? "answer.callsTool" : "answer.isComplete"));
  }

  #save(conversation) {
    return this.library.save(conversation, { onServer: this.settings.keepsOnServer });
  }

  #running(key) {
    return [...this.#runs.keys()].find((conversation) => conversation.key === key);
  }

  #show(conversation) {
    this.#opening = null;
    this.#conversation = conversation;
    this.#draw();
  }

  #draw() {
    this.thread.show(this.#conversation);
    this.view.onState();
  }
}
