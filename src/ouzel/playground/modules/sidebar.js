// The list of conversations: each can be opened, pinned, filed, renamed, exported and deleted, and a search looks through all.
// Folders stand above the days. A search has neither.

import { announce } from "./announcer.js";
import { button, byId, element, fill } from "./dom.js";
import { offerExport } from "./list/export_dialog.js";
import { listenToDrags } from "./list/dragging.js";
import { focusAgain, focusedPlace } from "./list/focus.js";
import { FolderActions } from "./list/folder_actions.js";
import { folderOf, foldersIn, isOpen, setOpen } from "./list/folders.js";
import { groupsOf, pinnedFirst } from "./list/groups.js";
import { Press } from "./list/press.js";
import { rowOf, titleField } from "./list/row.js";
import { MAX_FOLDER } from "./storage/labels.js";
import { UnknownConversation } from "./storage/library.js";
import { searchFor } from "./storage/tag_search.js";
import { translate } from "./texts/texts.js";

const MAX_SHOWN = 300; // rows that are drawn before a person asks for more

export class Sidebar {
  #isRenaming = false;
  #numShown = MAX_SHOWN;
  #pointer = new Press(byId("conversations"));

  /** `onChoice` is called when a conversation has been chosen and is shown, and `onBegin` with the labels of a new one. */
  constructor({ library, chat, deletions, notice, onChoice, onBegin }) {
    Object.assign(this, { library, chat, deletions, notice, onChoice, onBegin });
    this.folders = new FolderActions({ library, notice, current: () => chat.current, focusFolder: (name) => this.#focusFolder(name) });
    listenToDrags(byId("conversations"), (key, folder) => this.folders.move(key, folder));
    this.search = byId("search");
    this.search.addEventListener("input", () => this.#find());
    document.addEventListener("keydown", (event) => this.#press(event));
  }

  async #find() {
    this.#numShown = MAX_SHOWN;
    this.draw();
    await this.library.records.loadWords();
    this.draw();
    announce(translate("list.found", { count: this.#found().length }));
  }

  #found() {
    return this.library.records.found(this.search.value);
  }

  /** Draws the list anew, at any time: the focus stays where it is, and a title that is being written is left alone. */
  draw() {
    this.#pointer.after(() => this.#draw());
  }

  #draw() {
    if (this.#isRenaming) return;
    const place = focusedPlace();
    const records = this.#found();
    const isSearch = this.search.value.trim() !== "";
    const empty = element("p", { class: "muted empty", text: translate(isSearch ? "list.nothingFound" : "list.noneYet") });
    const { parts, hasMore } = isSearch ? this.#foundParts(records) : this.#parts(records);
    const more = hasMore ? button(translate("list.showMore"), () => this.#showMore(), { class: "more" }) : null;
    fill(byId("conversations"), ...(records.length === 0 ? [empty] : parts), more);
    if (place !== null) focusAgain(place);
  }

  #foundParts(records) {
    const rows = this.#rows(records.slice(0, this.#numShown));
    const parts = [element("ul", { "aria-label": translate("list.conversations") }, ...rows)];
    return { parts, hasMore: records.length > rows.length };
  }

  /** Returns the folders, the pinned conversations and the days. Those in folded folders are not drawn. */
  #parts(records) {
    const folders = foldersIn(records);
    const loose = pinnedFirst(records.filter(({ folder }) => folder === undefined));
    let numLeft = this.#numShown;
    let hasMore = false;
    const take = (own) => {
      const taken = own.slice(0, numLeft);
      numLeft -= taken.length;
      hasMore ||= taken.length < own.length;
      return taken;
    };
    const drawn = folders.map((folder, index) => {
      const rows = isOpen(folder.name) ? this.#rows(take(folder.records)) : [];
      return folderOf(folder, rows, `folder-${index}`, this.#folderActions);
    });
    const groups = groupsOf(take(loose)).map((group, index) => this.#group(group, index));
    return { parts: [...drawn, ...groups], hasMore };
  }

  #rows(records) {
    return records.map((record) => rowOf(record, record.key === this.chat.current.key, this.#actions));
  }

  #group({ title, records }, index) {
    const rows = this.#rows(records);
    const id = `group-${index}`;
    return element("section", {}, element("h2", { class: "group", id, text: title }), element("ul", { "aria-labelledby": id }, ...rows));
  }

  #actions = {
    open: (record) => this.#open(record),
    pin: ({ key, isPinned = false }) => this.library.pin(key, !isPinned),
    file: (record) => this.folders.file(this.library.records.get(record.key)),
    rename: (record, row) => this.#rename(record, row),
    exportOne: (record) => this.#export(record),
    remove: (record) => this.#delete(record),
    showTag: (tag) => this.#showTag(tag),
  };

  #folderActions = {
    toggle: (name) => this.#toggle(name),
    begin: (folder) => this.onBegin({ folder }),
    rename: (name, head) => this.#renameFolder(name, head),
    remove: (name) => this.folders.remove(name),
  };

  #toggle(name) {
    setOpen(name, !isOpen(name));
    this.draw();
  }

  #showTag(tag) {
    this.search.value = searchFor(tag);
    this.#find();
  }

  #showMore() {
    const numBefore = this.#numShown;
    this.#numShown += MAX_SHOWN;
    this.draw();
    byId("conversations").querySelectorAll(".title")[numBefore]?.focus();
  }

  async #open({ key, snippet = null }) {
    try {
      await this.chat.open(key);
      if (this.chat.current.key === key) this.onChoice(snippet);
    } catch (error) {
      this.notice(isGone(error) ? translate("list.goneFromServer") : error.message);
    }
    this.draw();
  }

  #rename(record, row) {
    this.#edit(row, record.title, (title) => this.#keepTitle(record.key, title));
  }

  #renameFolder(name, head) {
    this.#edit(head, name, (written) => this.folders.rename(name, written), { label: translate("list.folderName"), limit: MAX_FOLDER });
  }

  /** Puts a field in the place of a title. The list is not drawn before `keep` has got the new one. */
  #edit(place, title, keep, options) {
    this.#isRenaming = true;
    const onEnd = async (written) => {
      this.#isRenaming = false;
      if (written !== null) await keep(written);
      this.draw();
    };
    const input = titleField(title, onEnd, options);
    fill(place, input);
    input.select();
  }

  async #keepTitle(key, title) {
    const conversation = this.chat.held(key);
    if (conversation) conversation.title = title;
    await this.library.rename(key, title);
    this.chat.view.onState();
  }

  async #export({ key }) {
    try {
      offerExport(this.library.records.get(key), this.chat.held(key) ?? (await this.library.load(key)));
    } catch (error) {
      this.notice(isGone(error) ? translate("list.goneFromServer") : error.message);
    }
  }

  /** Deletes at once; for a while it can be taken back. */
  async #delete({ key, title }) {
    const isShown = this.chat.current.key === key;
    await this.deletions.begin(key);
    this.chat.drop(key);
    this.draw();
    const undo = { label: translate("list.undo"), act: () => this.#undo(key, isShown) };
    this.notice(translate("list.isDeleted", { title }), () => this.deletions.has(key), undo);
  }

  async #undo(key, isToShow) {
    const back = await this.deletions.undo(key);
    if (back === null) return;
    announce(translate("list.isBack"));
    if (isToShow && this.chat.current.nodes.length === 0) await this.#open({ key: back });
    this.#focus(back);
    this.chat.view.onState();
  }

  /** Ctrl+Z takes back the newest deletion, unless it is of what a person writes. */
  #press(event) {
    const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "z";
    if (!isUndo || event.target.closest("input, textarea, select, [contenteditable], dialog") !== null) return;
    this.#undo(undefined, false);
  }

  /** A person who has gone on elsewhere stays there. */
  #focusFolder(name) {
    const { activeElement: focused } = document;
    if (focused !== document.body && focused.closest("#conversations") === null) return;
    const head = [...byId("conversations").querySelectorAll("[data-folder]")].find((each) => each.dataset.folder === name);
    head?.querySelector("button").focus();
  }

  #focus(key) {
    const row = [...byId("conversations").querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
    row?.querySelector(".title").focus();
  }
}

/** The server, or the browser, has a conversation of the list no more. */
function isGone(error) {
  return error.status === 404 || error instanceof UnknownConversation;
}
