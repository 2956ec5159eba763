// The list of conversations: each can be opened, renamed, exported and deleted, and a search looks through all of them.

import { confirmed, openDialog } from "./dialogs/dialog.js";
import { button, byId, download, element, fill, isComposing } from "./dom.js";
import { fileName, jsonText, markdownText } from "./storage/export.js";

const MAX_SHOWN = 300;

export class Sidebar {
  constructor({ library, chat, notice }) {
    Object.assign(this, { library, chat, notice });
    this.search = byId("search");
    this.search.addEventListener("input", () => this.draw());
  }

  draw() {
    const records = this.library.found(this.search.value);
    const empty = this.search.value ? "Nothing found" : "No conversations yet";
    const rows = records.slice(0, MAX_SHOWN).map((record) => this.#row(record));
    fill(byId("conversations"), ...(rows.length > 0 ? rows : [element("li", { class: "muted empty", text: empty })]));
  }

  #row(record) {
    const isCurrent = record.key === this.chat.current.key;
    const open = button(record.title, () => this.#open(record.key), { class: "title", "aria-current": isCurrent ? "true" : null, title: record.title });
    const row = element("li", { class: isCurrent ? "current" : null }, open);
    const tools = [
      button(`Rename ${record.title}`, () => this.#rename(row, record), { icon: "✎" }),
      button(`Export ${record.title}`, () => this.#export(record), { icon: "⤓" }),
      button(`Delete ${record.title}`, () => this.#delete(record), { icon: "×" }),
    ];
    row.append(element("span", { class: "row-tools" }, ...tools));
    return row;
  }

  async #open(key) {
    try {
      await this.chat.open(key);
    } catch (error) {
      const isGone = error.status === 404;
      this.notice(isGone ? "The server no longer has this conversation." : error.message);
    }
    this.draw();
  }

  #rename(row, record) {
    const input = element("input", { "aria-label": "Title", maxlength: 200 });
    input.value = record.title;
    let isOver = false;
    const end = async (isKept) => {
      if (isOver) return;
      isOver = true;
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
    const choices = [offer("Markdown, as it is shown", markdownText, "md", "text/markdown"), offer("JSON, with all branches", jsonText, "json", "application/json")];
    const dialog = openDialog("Export", [element("div", { class: "row" }, ...choices)]);
  }

  async #loaded({ key }) {
    if (this.chat.current.key === key) return this.chat.current;
    try {
      return this.chat.held(key) ?? (await this.library.load(key));
    } catch (error) {
      this.notice(error.message);
      return null;
    }
  }

  async #delete({ key, title }) {
    if (!(await confirmed("Delete", `“${title}” will be gone for good.`, "Delete it"))) return;
    try {
      await this.library.remove(key);
      this.chat.drop(key);
    } catch (error) {
      this.notice(error.message);
    }
    this.draw();
  }
}
