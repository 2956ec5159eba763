// The list of conversations: each can be opened, renamed, exported and deleted, and a search looks through all of them.

import { announce } from "./announcer.js";
import { confirmed, openDialog } from "./dialogs/dialog.js";
import { button, byId, download, element, fill, isComposing } from "./dom.js";
import { fileName, jsonText, markdownText } from "./storage/export.js";
import { translate } from "./texts/texts.js";

const MAX_SHOWN = 300;

export class Sidebar {
  #isRenaming = false;

  /** `onChoice` is called when a conversation has been chosen and is shown. */
  constructor({ library, chat, notice, onChoice }) {
    Object.assign(this, { library, chat, notice, onChoice });
    this.search = byId("search");
    this.search.addEventListener("input", () => this.#find());
  }

  #find() {
    this.draw();
    announce(translate("list.found", { count: this.library.found(this.search.value).length }));
  }

  /** Draws the list anew, at any time: the focus stays where it is, and a title that is being written is left alone. */
  draw() {
    if (this.#isRenaming) return;
    const place = focusedPlace();
    const records = this.library.found(this.search.value);
    const empty = translate(this.search.value ? "list.nothingFound" : "list.noneYet");
    const rows = records.slice(0, MAX_SHOWN).map((record) => this.#row(record));
    fill(byId("conversations"), ...(rows.length > 0 ? rows : [element("li", { class: "muted empty", text: empty })]));
    if (place !== null) focusAgain(place);
  }

  #row(record) {
    const isCurrent = record.key === this.chat.current.key;
    const open = button(record.title, () => this.#open(record.key), { class: "title", dir: "auto", "aria-current": isCurrent ? "true" : null, title: record.title });
    const row = element("li", { class: isCurrent ? "current" : null, data: { key: record.key } }, open);
    const tools = [
      button(translate("list.rename", record), () => this.#rename(row, record), { icon: "✎" }),
      button(translate("list.export", record), () => this.#export(record), { icon: "⤓" }),
      button(translate("list.delete", record), () => this.#delete(record), { icon: "×" }),
    ];
    row.append(element("span", { class: "row-tools" }, ...tools));
    return row;
  }

  async #open(key) {
    try {
      await this.chat.open(key);
      this.onChoice();
    } catch (error) {
      const isGone = error.status === 404;
      this.notice(isGone ? translate("list.goneFromServer") : error.message);
    }
    this.draw();
  }

  #rename(row, record) {
    const input = element("input", { "aria-label": translate("list.title"), dir: "auto", maxlength: 200 });
    input.value = record.title;
    this.#isRenaming = true;
    const end = async (isKept) => {
      if (!this.#isRenaming) return;
      this.#isRenaming = false;
      const title = input.value.trim();
      if (isKept && title) await this.#keepTitle(record.key, title);
      this.draw();
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (isComposing(event)) return;
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") end(false);
    });
    input.addEventListener("blur", () => end(true));
    fill(row, input);
    input.select();
  }

  async #keepTitle(key, title) {
    const conversation = this.chat.held(key);
    if (conversation) conversation.title = title;
    await this.library.rename(key, title);
    this.chat.view.onState();
  }

  async #export(record) {
    const conversation = await this.#loaded(record);
    if (conversation === null) return;
    const offer = (name, text, ending, mediaType) =>
      button(name, () => {
        download(fileName(record.title, ending), text(conversation), mediaType);
        dialog.close();
      });
    const choices = [offer(translate("list.asMarkdown"), markdownText, "md", "text/markdown"), offer(translate("list.asJson"), jsonText, "json", "application/json")];
    const dialog = openDialog(translate("list.exportTitle"), [element("div", { class: "row" }, ...choices)]);
  }

  async #loaded({ key }) {
    try {
      return this.chat.held(key) ?? (await this.library.load(key));
    } catch (error) {
      this.notice(error.message);
      return null;
    }
  }

  async #delete({ key, title, files = [] }) {
    const question = translate(files.length > 0 ? "list.deleteWithFiles" : "list.deleteForGood", { title });
    if (!(await confirmed(translate("list.deleteTitle"), question, translate("list.deleteIt")))) return;
    try {
      await this.library.remove(key);
      this.chat.drop(key);
    } catch (error) {
      this.notice(error.message);
    }
    this.draw();
  }
}

/** Returns which button of which row has the focus; null where it is elsewhere. */
function focusedPlace() {
  const row = document.activeElement?.closest("#conversations li") ?? null;
  if (row === null) return null;
  const button = [...row.querySelectorAll("button")].indexOf(document.activeElement);
  return { key: row.dataset.key, index: [...row.parentElement.children].indexOf(row), button: Math.max(button, 0) };
}

/** Gives the focus to the same button, or where its row is gone to the one that took its place. */
function focusAgain({ key, index, button }) {
  const rows = [...byId("conversations").children];
  const same = rows.find((row) => row.dataset.key === key);
  const title = (same ?? rows[Math.min(index, rows.length - 1)]).querySelector("button");
  (same?.querySelectorAll("button")[button] ?? title ?? byId("new")).focus();
}
