// The page is put together here: what the server is, what is set, what is kept, and the chat.

import { Api } from "./api.js";
import { Chat } from "./chat/chat.js";
import { Composer } from "./chat/composer.js";
import { leaveCompletion, showsCompletion } from "./completion/address.js";
import { Completion } from "./completion/completion.js";
import { askForKey } from "./dialogs/key_dialog.js";
import { showShortcuts } from "./dialogs/shortcuts_dialog.js";
import { openTokenizer } from "./dialogs/tokenizer_dialog.js";
import { button, byId, element, fill, isComposing } from "./dom.js";
import { Attaching } from "./files/attaching.js";
import { manageConversations } from "./list/manage_dialog.js";
import { revealHit } from "./list/reveal.js";
import { Titles } from "./list/titles.js";
import { checkNotice, notice } from "./notice.js";
import { LostAddress } from "./lost_address.js";
import { Routes } from "./routes.js";
import { ModelButton } from "./models/model_button.js";
import { absentServer, isAway, waitForServer } from "./offline/away.js";
import { keepShell } from "./offline/shell.js";
import { Server } from "./server.js";
import { SettingsPanel } from "./settings/panel.js";
import { Settings } from "./settings/settings.js";
import { SharedConversation } from "./shared_conversation.js";
import { Sidebar } from "./sidebar.js";
import { Deletions } from "./storage/deletions.js";
import { Library } from "./storage/library.js";
import { ServerKeeper } from "./storage/server_keeper.js";
import { listenToLanguage } from "./texts/language.js";
import { translate } from "./texts/texts.js";
import { applyTheme, nextTheme } from "./theme.js";

async function begin() {
  showTheme(applyTheme());
  if (matchMedia("(min-width: 60.01rem)").matches) setOpen("sidebar", "toggle-sidebar", true);
  const api = new Api(askForKey);
  try {
    await build(api, await askServer(api));
  } catch (error) {
    showFailure(error);
  }
}

/** Returns what the server says of itself, or where it is away a server that can do nothing until the page is opened again. */
async function askServer(api) {
  try {
    const server = await Server.ask(api);
    whenIdle(keepShell);
    return server;
  } catch (error) {
    if (!isAway(error)) throw error;
    waitForServer();
    return absentServer();
  }
}

async function build(api, server) {
  const settings = new Settings(server);
  const library = new Library(new ServerKeeper(api), {
    onChange: () => {
      sidebar.draw();
      routes.follow();
    },
    onTrouble: notice,
    onSaved: (conversation) => titles.take(conversation),
    onElsewhere: (key, record, newKey) => shared.take(key, record, newKey),
  });
  settings.onKeep = (conversation) => library.keepSettings(conversation);
  const deletions = new Deletions(library, { onTrouble: notice });
  const view = { container: byId("thread"), notice, onState: () => onState(), turnOn, chooseModel: (choice) => modelButton.choose(choice) };
  const chat = new Chat({ api, settings, library, view });
  const titles = new Titles({ api, settings, library, chat });
  const lost = new LostAddress({ onAgain: () => routes.go(), onNew: () => begins() });
  const routes = new Routes(chat, { onLost: (error) => lost.show(error) });
  const shared = new SharedConversation({ chat, routes, notice });
  const sidebar = new Sidebar({ library, chat, deletions, notice, onChoice: (snippet) => showChoice(chat, snippet) });
  const completion = new Completion({ api, settings, container: byId("completion") });
  const modelButton = new ModelButton({ api, settings, notice, onTake: () => takeModel(), onChange: () => onState() });
  const attaching = new Attaching({ api, settings });
  const composer = new Composer({ onSend: (text, attached) => chat.send(text, attached), onStop: () => chat.stop(), notice, attaching });
  const sentFiles = () => chat.current.path().flatMap(({ message }) => message.files);
  const attachedFiles = () => [...sentFiles().filter(({ use }) => use !== "python"), ...composer.attachments.searchable];
  const panel = new SettingsPanel(byId("settings-fields"), settings, api, { onChange: () => view.onState(), attachedFiles });
  const drawPanel = () => panel.draw().catch((error) => notice(error.message));
  function onState() {
    showState({ chat, composer, completion, settings, lost, routes });
    modelButton.draw();
    if (isOpen("settings") && !panel.isCurrent) drawPanel();
  }
  function takeModel() {
    if (isOpen("settings")) drawPanel();
    onState();
  }
  function turnOn(tool) {
    settings.turnOn(tool);
    notice(translate("page.pythonIsOn"));
    if (isOpen("settings")) drawPanel();
  }
  const begins = () => {
    leaveCompletion();
    chat.begin();
    sidebar.draw();
    leaveSidebar();
    focusMain(composer, completion);
  };
  addEventListener("hashchange", () => {
    view.onState();
    leaveSidebar();
    focusMain(composer, completion);
  });
  byId("version").textContent = server.version;
  listen({ begins, openTokens: () => openTokenizer(api, settings.model), stop: () => (completion.isRunning ? completion.stop() : chat.stop()), drawPanel });
  byId("manage").addEventListener("click", () => manageConversations({ library, chat }));
  performance.mark("list-opens"); // benchmarks/playground.py reads the time until the list is drawn
  const listed = library.open().then(() => performance.measure("list", "list-opens"));
  await Promise.all([listed, routes.go()]);
  deletions.resume();
  document.body.classList.add("ready");
  view.onState();
  focusMain(composer, completion);
}

/** Shows what a person has chosen in the list, and of a search the message with the words. */
function showChoice(chat, snippet) {
  const isOver = leaveSidebar();
  if (snippet !== null) revealHit(chat, snippet);
  else if (isOver) byId("thread").focus();
}

/** Gives the focus to the field that a person writes in. */
function focusMain(composer, completion) {
  if (byId("completion").hidden) composer.focus();
  else completion.focus();
}

function showState({ chat, composer, completion, settings, lost, routes }) {
  checkNotice();
  routes.follow();
  const isEmpty = chat.current.nodes.length === 0;
  const { whyNoChat, contextLength } = settings.model;
  byId("context").textContent = contextLength === null ? "" : translate("page.contextLength", { count: contextLength });
  const isCompletion = showsCompletion(settings.model, { isEmpty });
  byId("completion").hidden = !isCompletion;
  byId("thread").hidden = isCompletion;
  lost.setShown(routes.isLost && isEmpty);
  byId("welcome").hidden = !isEmpty || whyNoChat !== "" || routes.isLost;
  byId("composer").hidden = whyNoChat !== "" || isCompletion;
  byId("no-chat").textContent = isCompletion ? "" : whyNoChat;
  byId("title").textContent = isCompletion ? translate("completion.title") : chat.current.title || translate("list.newConversation");
  completion.draw();
  document.title = chat.current.title ? `${chat.current.title} · Ouzel` : "Ouzel";
  composer.setState({ isBusy: chat.isAnswering });
}

/** Safari does not tell when it is idle. */
function whenIdle(act) {
  (globalThis.requestIdleCallback ?? setTimeout)(act);
}

function listen({ begins, openTokens, stop, drawPanel }) {
  const toggleSettings = async () => {
    if (!isOpen("settings")) await drawPanel();
    toggle("settings", "toggle-settings");
  };
  byId("new").addEventListener("click", begins);
  byId("open-tokenizer").addEventListener("click", openTokens);
  byId("open-shortcuts").addEventListener("click", showShortcuts);
  byId("theme").addEventListener("click", () => showTheme(nextTheme()));
  listenToLanguage(byId("language"));
  byId("toggle-settings").addEventListener("click", toggleSettings);
  byId("close-settings").addEventListener("click", toggleSettings);
  byId("toggle-sidebar").addEventListener("click", () => toggle("sidebar", "toggle-sidebar"));
  byId("close-sidebar").addEventListener("click", () => toggle("sidebar", "toggle-sidebar"));
  const keys = {
    KeyN: begins,
    KeyF: () => (show("sidebar", "toggle-sidebar"), byId("search").focus()),
    KeyS: toggleSettings,
    KeyP: () => byId("prompt").focus(),
    KeyH: showShortcuts,
    ArrowUp: editLast,
  };
  document.addEventListener("keydown", (event) => {
    const isInDialog = document.querySelector("dialog[open]") !== null;
    if (event.key === "Escape" && !isInDialog && !isComposing(event)) stop();
    if (!event.altKey || event.ctrlKey || isInDialog || !keys[event.code]) return;
    event.preventDefault();
    keys[event.code]();
  });
}

function editLast() {
  const own = [...document.querySelectorAll(".message.user")].at(-1);
  const edit = own && [...own.querySelectorAll("button")].find((each) => each.textContent === translate("message.edit"));
  edit?.click();
}

function toggle(id, control) {
  const isToOpen = !isOpen(id);
  setOpen(id, control, isToOpen);
  if (isToOpen) byId(id).querySelector("button, input, select, textarea")?.focus();
  else byId(control).focus();
}

function isOpen(id) {
  return document.body.classList.contains(`${id}-open`);
}

function setOpen(id, control, isToOpen) {
  document.body.classList.toggle(`${id}-open`, isToOpen);
  byId(control).setAttribute("aria-expanded", String(isToOpen));
}

/** On a phone the list lies over the chat; returns whether it did. */
function leaveSidebar() {
  const isOver = isOpen("sidebar") && matchMedia("(max-width: 45rem)").matches;
  if (isOver) setOpen("sidebar", "toggle-sidebar", false);
  return isOver;
}

function show(id, control) {
  setOpen(id, control, true);
}

function showTheme(theme) {
  byId("theme").textContent = translate("page.themeNow", { theme: translate(`page.theme.${theme}`) });
}

function showFailure(error) {
  const again = button(translate("page.tryAgain"), () => location.reload(), { class: "primary" });
  fill(byId("failure"), element("p", { text: error.message }), again);
  byId("failure").hidden = false;
}

begin();
