// What a person does with the folders and the tags of the list. Whatever is filed is told to screen readers.

import { announce } from "../announcer.js";
import { openPart } from "../later.js";
import { folderName, isSameName } from "../storage/labels.js";
import { translate } from "../texts/texts.js";
import { foldersIn, isOpen, setOpen } from "./folders.js";

export class FolderActions {
  /** `current` returns the conversation that is shown, and `focusFolder` gives the focus to the folder of a name. */
  constructor({ library, notice, current, focusFolder }) {
    Object.assign(this, { library, notice, current, focusFolder });
  }

  /** Lets a person choose the folder and the tags of a conversation. */
  file(record) {
    const { all } = this.library.records;
    const folders = foldersIn(all).map(({ name }) => name);
    const tags = [...new Set(all.flatMap((each) => each.tags ?? []))].sort();
    const keep = (labels) => this.#keep(record, labels);
    openPart(() => import("./filing_dialog.js"), (part) => part.openFiling(record, { folders, tags, keep }));
  }

  /** Moves a conversation into a folder, or out of all where the name is null. */
  async move(key, folder) {
    const record = this.library.records.get(key);
    if (record === null || (record.folder ?? null) === folder) return;
    await this.library.relabel([key], ({ tags }) => ({ folder, tags }));
    tell(record.title, folder);
  }

  /** Gives a folder another name: that of another folder joins both. */
  async rename(name, written) {
    const wanted = folderName(written);
    const other = this.#names().find((each) => each !== name && isSameName(each, wanted));
    const newName = other ?? wanted;
    if (wanted === "" || newName === name) return;
    if (isOpen(name)) setOpen(newName, true);
    setOpen(name, false);
    await this.#change(this.#keysIn(name), () => newName);
    this.#renameNew(name, { folder: newName });
    this.focusFolder(newName);
  }

  /** The conversations of the folder stay. It can be taken back. */
  async remove(name) {
    const keys = this.#keysIn(name);
    await this.#change(keys, () => undefined);
    this.#renameNew(name, {});
    const act = async () => {
      await this.#change(keys, (folder) => folder ?? name);
      this.focusFolder(name);
    };
    this.notice(translate("list.folderIsGone", { folder: name }), () => true, { label: translate("list.undo"), act });
  }

  async #keep(record, labels) {
    const folder = labels.folder ?? null;
    if (folder !== null && folder !== record.folder) setOpen(folder, true);
    await this.library.relabel([record.key], () => labels);
    if (folder !== (record.folder ?? null)) tell(record.title, folder);
    else announce(translate("list.isTagged", { title: record.title }));
  }

  #change(keys, newFolder) {
    return this.library.relabel(keys, ({ folder, tags }) => ({ folder: newFolder(folder), tags }));
  }

  /** A conversation that was begun in a folder, and has no message yet, is in no record. */
  #renameNew(name, labels) {
    const shown = this.current();
    if (shown.labels.folder === name) shown.labels = labels;
  }

  /** A deleted conversation that can be taken back is still in its folder. */
  #keysIn(name) {
    return this.library.records.all.filter(({ folder }) => folder === name).map(({ key }) => key);
  }

  #names() {
    return foldersIn(this.library.records.all).map(({ name }) => name);
  }
}

function tell(title, folder) {
  announce(folder === null ? translate("list.isInNoFolder", { title }) : translate("list.isInFolder", { title, folder }));
}
