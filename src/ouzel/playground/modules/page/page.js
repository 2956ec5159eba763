// The parts of the page, and what each of them needs to know of the others. It shows one of three things: a conversation,
// the completion box, or a comparison of two models.

import { Chat } from "../chat/chat.js";
import { Composer } from "../chat/composer.js";
import { Conversation } from "../chat/conversation.js";
import { RunningAnswers } from "../chat/running.js";
import { CompareMode } from "../compare/mode.js";
import { showsCompletion } from "../completion/address.js";
import { CompletionMode } from "../completion/mode.js";
import { byId } from "../dom.js";
import { Attaching } from "../files/attaching.js";
import { openPart } from "../later.js";
import { revealHit } from "../list/reveal.js";
import { Titles } from "../list/titles.js";
import { LostAddress } from "../lost_address.js";
import { ModelButton } from "../models/model_button.js";
import { checkNotice, notice } from "../notice.js";
import { Routes } from "../routes.js";
import { Settings } from "../settings/settings.js";
import { SettingsSide } from "../settings/side.js";
import { SharedConversation } from "../shared_conversation.js";
import { Sidebar } from "../sidebar.js";
import { Deletions } from "../storage/deletions.js";
import { Library } from "../storage/library.js";
import { ServerKeeper } from "../storage/server_keeper.js";
import { translate } from "../texts/texts.js";
import { Welcome } from "../welcome/welcome.js";
import { listenToControls } from "./controls.js";
import { isOpen, leaveSidebar, setOpen, toggle } from "./panels.js";

export class Page {
  constructor(api, server) {
    Object.assign(this, { api, server });
    this.settings = new Settings(server);
    this.#keep();
    this.#converse();
    this.#list();
    this.#write();
  }

  /** Opens what the browser keeps, and what the address names. */
  async open() {
    byId("version").textContent = this.server.version;
    performance.mark("list-opens"); // benchmarks/playground.py reads the time until the list is drawn
    const listed = this.library.open().then(() => performance.measure("list", "list-opens"));
    await Promise.all([listed, this.routes.go(), this.comparing.enter()]);
    this.deletions.resume();
    document.body.classList.add("ready");
    this.#show();
    addEventListener("hashchange", () => this.#show());
  }

  /** Makes what keeps conversations. */
  #keep() {
    const { api, settings } = this;
    this.library = new Library(new ServerKeeper(api), {
      onChange: () => {
        this.sidebar.draw();
        this.routes.follow();
      },
      onTrouble: notice,
      onSaved: (conversation) => this.titles.take(conversation),
      onElsewhere: (key, record, newKey) => this.shared.take(key, record, newKey),
    });
    settings.onKeep = (conversation) => this.library.keepSettings(conversation);
    this.deletions = new Deletions(this.library, { onTrouble: notice });
  }

  /** Makes what the page shows one of at a time, and the addresses of them. */
  #converse() {
    const { api, server, settings, library } = this;
    const chooseModel = (choice) => this.modelButton.choose(choice);
    const onState = () => this.#showState();
    const view = {
      container: byId("thread"),
      toEnd: byId("to-end"),
      notice,
      onState,
      turnOn: (tool) => this.#turnOn(tool),
      chooseModel,
      release: (key) => this.comparing.release(key),
    };
    const save = (conversation) => library.save(conversation, { onServer: settings.keepsOnServer });
    const running = new RunningAnswers({ api, settings, save });
    this.chat = new Chat({ api, settings, library, running, view });
    this.completion = new CompletionMode({ api, settings, container: byId("completion") });
    this.comparing = new CompareMode({
      ...{ api, server, settings, library, running, notice, onState, chooseModel },
      onOpen: (key) => this.#openCompared(key),
      onSettings: (ofColumn, caption) => this.#showColumnSettings(ofColumn, caption),
    });
    this.lost = new LostAddress({ onAgain: () => this.routes.go(), onNew: () => this.#begin() });
    this.routes = new Routes(this.chat, { onLost: (error) => this.lost.show(error) });
    this.titles = new Titles({ api, settings, library, chat: this.chat });
    this.shared = new SharedConversation({ chat: this.chat, routes: this.routes, notice });
  }

  /** Makes the list of conversations and the buttons. */
  #list() {
    const { api, settings, library, chat, deletions } = this;
    this.sidebar = new Sidebar({ library, chat, deletions, notice, onChoice: (snippet) => this.#showChoice(snippet), onBegin: (labels) => this.#begin(labels) });
    this.modelButton = new ModelButton({ api, settings, onTake: () => this.#takeModel(), onChange: () => this.#showState() });
    listenToControls({
      begin: () => this.#begin(),
      stop: () => this.#active.stop(),
      toggleSettings: () => this.#toggleSettings(),
      openTokenizer: () => openPart(() => import("../dialogs/tokenizer_dialog.js"), (part) => part.openTokenizer(api, settings.model)),
      manage: () => openPart(() => import("../list/manage_dialog.js"), (part) => part.manageConversations({ library, chat })),
    });
  }

  /** Makes the field for messages, and the panel of settings. */
  #write() {
    const { api, settings, chat } = this;
    this.composer = new Composer({
      onSend: (text, attached) => this.#active.send(text, attached),
      onStop: () => this.#active.stop(),
      onRemove: checkNotice,
      notice,
      attaching: new Attaching({ api, settings }),
      situation: () => (this.comparing.isShown ? this.comparing : chat).situation,
    });
    const sentFiles = () => chat.current.path().flatMap(({ message }) => message.files);
    const attachedFiles = () => [...sentFiles().filter(({ use }) => use !== "python"), ...this.composer.attachments.searchable];
    this.panel = new SettingsSide(settings, { container: byId("settings-fields"), api, onChange: () => this.#showState(), attachedFiles });
    // What draws messages comes while the first one is written.
    byId("prompt").addEventListener("input", () => import("../chat/message_view.js").catch(() => {}), { once: true });
    this.welcome = new Welcome({ settings, onSettings: () => this.#takeModel() });
  }

  /** Returns what a person writes to, and stops. */
  get #active() {
    if (this.comparing.isShown) return this.comparing;
    return this.completion.isRunning ? this.completion : this.chat;
  }

  /** `labels` has the folder in which the conversation is begun. */
  #begin(labels = {}) {
    this.chat.begin(new Conversation({ labels }));
    this.sidebar.draw();
    this.#show();
  }

  /** Shows what the address names, with the focus on the field that a person writes in. */
  #show() {
    this.#showState();
    leaveSidebar();
    (byId("completion").hidden ? this.composer : this.completion).focus();
  }

  /** Shows what a person has chosen in the list, and of a search the message with the words. */
  #showChoice(snippet) {
    if (this.routes.leaveOther()) this.#showState();
    const isOver = leaveSidebar();
    if (snippet !== null) revealHit(this.chat, snippet);
    else if (isOver) byId("thread").focus();
  }

  async #openCompared(key) {
    await this.chat.open(key);
    this.sidebar.draw();
    byId("thread").focus();
  }

  #showState() {
    const { chat, comparing, completion, settings, routes, panel } = this;
    checkNotice();
    routes.follow();
    const isEmpty = chat.current.nodes.length === 0;
    const isCompletion = !comparing.isShown && showsCompletion(settings.model, { isEmpty });
    this.#showParts({ isEmpty, isCompletion });
    this.#showTitle(isCompletion);
    comparing.draw();
    completion.draw();
    this.welcome.draw();
    this.composer.setState({ isBusy: (comparing.isShown ? comparing : chat).isAnswering });
    this.modelButton.draw();
    if (!comparing.isShown) panel.look(settings);
    else if (panel.shown === settings) setOpen("settings", false);
    if (isOpen("settings") && !panel.isCurrent) this.#drawPanel();
  }

  #showParts({ isEmpty, isCompletion }) {
    const { comparing, routes } = this;
    const { whyNoChat, contextLength } = this.settings.model;
    byId("context").textContent = contextLength === null ? "" : translate("page.contextLength", { count: contextLength });
    byId("completion").hidden = !isCompletion;
    byId("thread").hidden = isCompletion || comparing.isShown;
    this.lost.setShown(routes.isLost && isEmpty);
    byId("welcome").hidden = !isEmpty || whyNoChat !== "" || routes.isLost;
    byId("composer").hidden = whyNoChat !== "" || isCompletion;
    byId("no-chat").textContent = isCompletion ? "" : whyNoChat;
    for (const id of ["model", "toggle-settings"]) byId(id).hidden = comparing.isShown; // each column has its own
  }

  #showTitle(isCompletion) {
    const mode = this.comparing.isShown ? translate("compare.title") : isCompletion ? translate("completion.title") : "";
    const { title: ownTitle, labels, key } = this.chat.current;
    const title = mode || ownTitle;
    const isInFolder = key === undefined && labels.folder !== undefined;
    byId("title").textContent = title || (isInFolder ? translate("list.newInFolder", labels) : translate("list.newConversation"));
    document.title = title ? `${title} · Ouzel` : "Ouzel";
  }

  /** Returns whether there is something to show. */
  async #drawPanel() {
    try {
      return await this.panel.draw();
    } catch (error) {
      notice(error.message);
      return true;
    }
  }

  async #toggleSettings() {
    if (byId("toggle-settings").hidden && !isOpen("settings")) return; // each column has a button of its own
    if (!isOpen("settings") && !(await this.#drawPanel())) return;
    toggle("settings");
  }

  async #showColumnSettings(ofColumn, caption) {
    const opener = document.activeElement;
    this.panel.look(ofColumn, caption);
    if (!(await this.#drawPanel())) return;
    setOpen("settings", true);
    byId("close-settings").focus();
    byId("close-settings").addEventListener("click", () => this.comparing.isShown && opener.focus(), { once: true });
  }

  #takeModel() {
    if (isOpen("settings")) this.#drawPanel();
    this.chat.redraw();
    this.#showState();
  }

  #turnOn(tool) {
    this.settings.turnOn(tool);
    notice(translate("page.pythonIsOn"), () => this.settings.values.hostedTools.includes(tool));
    if (isOpen("settings")) this.#drawPanel();
  }
}
