// What a person does with a chat: each action changes the conversation, shows it, and asks for an answer where one is due.

import { deleteUploaded, downloadFromSandbox } from "../files/files_of_server.js";
import { isForPython } from "../files/kinds.js";
import { shortName } from "../files/names.js";
import { openPart } from "../later.js";
import { PYTHON } from "../server.js";
import { isSettled } from "../storage/server_keeper.js";
import { translate } from "../texts/texts.js";
import { Conversation, message, titleOfMessage } from "./conversation.js";
import { bodyFor, hasServerTools, withoutSecrets } from "./request.js";
import { addResults } from "./running.js";
import { Thread } from "./thread.js";
import { unseenText } from "./unseen.js";

export class Chat {
  #conversation = new Conversation();
  #opening = null; // the key of a conversation that is to be shown once it has come

  /**
   * `running` are the answers that the page makes. `view.release` gives away a conversation that another part of the page
   * shows. `view.onState` is called when another conversation is shown, or an answer begins or ends.
   */
  constructor({ api, settings, library, running, view }) {
    Object.assign(this, { api, settings, library, running, view });
    this.thread = new Thread(view.container, this, view.toEnd);
    running.watch(this.#runningView());
  }

  get current() {
    return this.#conversation;
  }

  get isAnswering() {
    return this.running.has(this.#conversation);
  }

  /** Returns the model that is chosen, and what it would read before the next message. */
  get situation() {
    const { settings } = this;
    const messages = () => this.#conversation.path().map(({ message: said }) => said);
    return {
      model: settings.model,
      server: settings.server,
      get messages() {
        return messages();
      },
      get usesServerTools() {
        return hasServerTools(settings, messages());
      },
    };
  }

  begin(conversation = new Conversation()) {
    this.#show(conversation);
  }

  /** Shows the conversation of this key, unless another one is shown or an answer is asked for before it has come. */
  async open(key) {
    const opening = (this.#opening = { key });
    const held = this.view.release(key) ?? this.running.held(key);
    const [loaded] = await Promise.all([held ?? this.library.load(key), this.thread.prepare()]);
    if (opening === this.#opening) this.#show(this.running.held(key) ?? loaded);
  }

  /** Returns the conversation of this key where the page holds it: it is shown, or an answer is being made for it. */
  held(key) {
    return this.#conversation.key === key ? this.#conversation : this.running.held(key);
  }

  /** Ends what is being made for a conversation that is gone, and shows another in its place. */
  drop(key) {
    const conversation = this.held(key);
    this.running.stop(conversation);
    this.running.drop(key);
    if (conversation === this.#conversation) this.begin();
  }

  /** `attached` has pictures and files. Returns false where nothing was sent, and what was written is to stay. */
  send(content, attached) {
    if (!this.maySend(attached)) return false;
    const conversation = this.#conversation;
    conversation.title ||= titleOfMessage(content, attached);
    conversation.add(conversation.activeLeaf, message("user", { content, ...attached }));
    this.running.answer(conversation);
    return true;
  }

  stop() {
    this.running.stop(this.#conversation);
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
    } else this.running.answer(conversation);
    return true;
  }

  /** `model` makes the other answer, in the place of the conversation's own. */
  regenerate(node, model = null) {
    if (!this.#maySend()) return;
    const conversation = this.#conversation;
    if (node.message.error?.responseId) return void this.running.resumeNode(conversation, node);
    if (isSettled(node.message) || conversation.hasBehind(node)) conversation.activeLeaf = node.parent;
    else conversation.remove(node);
    this.running.answer(conversation, { model });
  }

  get hasOtherModels() {
    return this.settings.server.chattingModels.length > 1;
  }

  /** Lets a person choose the model of another answer. */
  regenerateWith(node) {
    this.view.chooseModel({ chosen: node.message.model, onChoose: (name) => this.regenerate(node, name) });
  }

  /** Asks again what got no answer. */
  askAgain(node) {
    if (!this.#maySend()) return;
    this.#conversation.activeLeaf = node.id;
    this.running.answer(this.#conversation);
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
    this.running.answer(this.#conversation, { continued: node.message });
  }

  takeResults(node, results, round = 0) {
    if (!this.#maySend()) return;
    const conversation = this.#conversation;
    conversation.activeLeaf = node.id;
    addResults(conversation, node, results);
    this.running.answer(conversation, { round });
  }

  /** The server runs the calls that a person allows, and the model reads which ones are not allowed. */
  takeApprovals(node, approvals) {
    if (!this.#maySend()) return;
    const conversation = this.#conversation;
    conversation.add(node.id, message("approval", { approvals }));
    this.running.answer(conversation);
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

  /** Says what of a message the chosen model does not see; empty where it sees all. */
  unseenOf({ message: said }) {
    return said.images.length + said.files.length === 0 ? "" : unseenText(said, this.situation);
  }

  /** Shows the conversation again, after a choice of another model. */
  redraw() {
    this.thread.show(this.#conversation);
  }

  showRequest(node) {
    if (this.settings.faults.length > 0) return this.#noticeFaults();
    const body = withoutSecrets(bodyFor(this.settings, this.#conversation.path(node.parent)));
    openPart(() => import("../dialogs/request_dialog.js"), (part) => part.showRequest(body));
  }

  /** Returns the results of the other calls of an answer, which one that is edited has behind it. */
  #resultsBehind(node) {
    const path = this.#conversation.path();
    const behind = path.slice(path.indexOf(node) + 1).map((each) => each.message);
    const end = behind.findIndex((said) => said.role !== "tool");
    return end < 0 ? behind : behind.slice(0, end);
  }

  /** Tells whether a message may be sent now; where it may not, a notice says why. */
  maySend(attached) {
    return this.#maySend() && this.#canUse(attached.files);
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
      this.view.notice(translate("answer.onlyForSearches", { name: shortName(forSearch.name) }), () => settings.values.collection === "");
      return false;
    }
    if (files.some(({ use }) => isForPython(use)) && !settings.values.hostedTools.includes(PYTHON)) this.view.turnOn(PYTHON);
    return true;
  }

  #noticeFaults(wrap = (why) => why) {
    const text = this.settings.faults.join("\n");
    this.view.notice(wrap(text), () => this.settings.faults.join("\n") === text);
  }

  /** Returns what is done on the page while answers are made. */
  #runningView() {
    const isShown = (conversation) => conversation === this.#conversation;
    return {
      onBegin: (conversation) => {
        if (isShown(conversation)) this.#opening = null;
        this.#draw();
      },
      onDelta: (conversation, node, delta) => isShown(conversation) && this.thread.append(node, delta),
      onWait: (conversation) => isShown(conversation) && this.thread.showWait(conversation),
      onRestart: (conversation, node) => isShown(conversation) && this.thread.redraw(node),
      onChange: (conversation) => isShown(conversation) && this.#draw(),
      onChangeElsewhere: (conversation) => isShown(conversation) && this.open(conversation.key).catch(() => {}), // it may be deleted
    };
  }

  #save(conversation) {
    return this.running.save(conversation);
  }

  #show(conversation) {
    this.#opening = null;
    this.settings.look(conversation);
    this.#conversation = conversation;
    if (conversation.key !== undefined) this.running.resume(conversation);
    this.#draw();
  }

  #draw() {
    this.thread.show(this.#conversation);
    this.view.onState();
  }
}
