// The list of conversations: each can be opened, pinned, renamed, exported and deleted, and a search looks through all.

import { announce } from "./announcer.js";
import { button, byId, element, fill } from "./dom.js";
import { offerExport } from "./list/export_dialog.js";
import { focusAgain, focusedPlace } from "./list/focus.js";
import { groupsOf } from "./list/groups.js";
import { rowOf, titleField } from "./list/row.js";
import { UnknownConversation } from "./storage/library.js";
import { translate } from "./texts/texts.js";

const MAX_SHOWN = 300; // rows that are drawn before a person asks for more

export class Sidebar {
  #isRenaming = false;
  #numShown = MAX_SHOWN;

  /** `onChoice` is called when a conversation has been chosen and is shown. */
  constructor({ library, chat, deletions, notice, onChoice }) {
    Object.assign(this, { library, chat, deletions, notice, onChoice });
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
    if (this.#isRenaming) return;
    const place = focusedPlace();
    const records = this.#found();
    const isSearch = this.search.value.trim() !== "";
    const shown = records.slice(0, this.#numShown);
    const groups = isSearch ? [{ title: null, records: shown }] : groupsOf(pinnedFirst(records).slice(0, this.#numShown));
    const empty = element("p", { class: "muted empty", text: translate(isSearch ? "list.nothingFound" : "list.noneYet") });
    const more = records.length > shown.length ? button(translate("list.showMore"), () => this.#showMore(), { class: "more" }) : null;
    fill(byId("conversations"), ...(records.length === 0 ? [empty] : groups.map((group, index) => this.#group(group, index))), more);
    if (place !== null) focusAgain(place);
  }

  #group({ title, records }, index) {
    const rows = records.map((record) => rowOf(record, record.key === this.chat.current.key, this.#actions));
    if (title === null) return element("ul", { "aria-label": translate("list.conversations") }, ...rows);
    const id = `group-${index}`;
    return element("section", {}, element("h2", { class: "group", id, text: title }), element("ul", { "aria-labelledby": id }, ...rows));
  }

  #actions = {
    open: (record) => this.#open(record),
    pin: ({ key, isPinned = false }) => this.library.pin(key, !isPinned),
    rename: (record, row) => this.#rename(record, row),
    exportOne: (record) => this.#export(record),
    remove: (record) => this.#delete(record),
  };

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
    this.#isRenaming = true;
    const input = titleField(record.title, async (title) => {
      this.#isRenaming = false;
      if (title !== null) await this.#keepTitle(record.key, title);
      this.draw();
    });
    fill(row, input);
    input.select();
  }

  async #keepTitle(key, title) {
    const conversation = this.chat.held(key);
    if (conversation) conversation.title = title;
    await this.library.rename(key, title);
    this.chat.view.onState();
  }

  async #export({ key, title }) {
    try {
      offerExport(title, this.chat.held(key) ?? (await this.library.load(key)));
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

  #focus(key) {
    const row = [...byId("conversations").querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
    row?.querySelector(".title").focus();
  }
}

function pinnedFirst(records) {
  return [...records.filter(({ isPinned }) => isPinned), ...records.filter(({ isPinned }) => !isPinned)];
}

/** The server, or the browser, has a conversation of the list no more. */
function isGone(error) {
  return error.status === 404 || error instanceof UnknownConversation;
}
