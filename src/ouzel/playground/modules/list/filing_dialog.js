// The folder and the tags of a conversation.

import { openDialog } from "../dialogs/dialog.js";
import { button, element, field, fill, isComposing } from "../dom.js";
import { folderName, isSameName, MAX_FOLDER, MAX_TAG, MAX_TAGS, tagName } from "../storage/labels.js";
import { searchFor } from "../storage/tag_search.js";
import { translate } from "../texts/texts.js";

const NEW = "new";
const NONE = "none";
const FOLDER = "folder:"; // before a name

/** `folders` and `tags` are the names that there are. `keep` gets the new `folder`, which may be missing, and `tags`. */
export function openFiling(record, { folders, tags, keep }) {
  new Filing(record, { folders, tags, keep }).open();
}

class Filing {
  constructor(record, { folders, tags, keep }) {
    Object.assign(this, { record, folders, tags, keep });
    this.chosen = [...(record.tags ?? [])];
    this.fault = element("p", { class: "fault", role: "alert" });
    this.list = element("ul", { class: "tags", "aria-label": translate("filing.tags") });
  }

  open() {
    const form = element("form", { on: { submit: (event) => this.#submit(event) } }, ...this.#folderFields(), ...this.#tagFields(), this.fault, this.#buttons());
    const title = element("p", { class: "filed-title" }, element("bdi", { text: this.record.title }));
    this.#drawTags();
    this.dialog = openDialog(translate("filing.title"), [title, form], { focused: this.select });
  }

  #folderFields() {
    const { folder } = this.record;
    const named = this.folders.map((name) => element("option", { value: FOLDER + name, dir: "auto", text: name }));
    const none = element("option", { value: NONE, text: translate("filing.none") });
    this.select = element("select", { id: "filing-folder", on: { change: () => this.#drawNew() } }, none, ...named, element("option", { value: NEW, text: translate("filing.new") }));
    this.select.value = folder === undefined ? NONE : FOLDER + folder;
    this.name = element("input", { id: "filing-name", dir: "auto", autocomplete: "off", maxlength: MAX_FOLDER });
    this.newField = field(translate("filing.newName"), this.name, translate("filing.nameHint", { count: MAX_FOLDER }));
    this.newField.hidden = true;
    return [field(translate("filing.folder"), this.select), this.newField];
  }

  #tagFields() {
    const known = element("datalist", { id: "filing-known" }, ...this.tags.map((tag) => element("option", { value: tag })));
    this.tag = element("input", { id: "filing-tag", dir: "auto", autocomplete: "off", maxlength: MAX_TAG, list: known.id, on: { keydown: (event) => this.#press(event) } });
    this.tag.setAttribute("aria-label", translate("filing.newTag"));
    const hint = element("small", { class: "muted", id: "filing-hint", text: translate("filing.tagHint", { count: MAX_TAGS, characters: MAX_TAG }) });
    this.tag.setAttribute("aria-describedby", hint.id);
    const add = button(translate("filing.add"), () => this.#add());
    const label = element("span", { class: "field-label", text: translate("filing.tags") });
    return [element("div", { class: "field" }, label, this.list, element("div", { class: "filing-tag" }, this.tag, add), hint, known)];
  }

  #buttons() {
    const leave = button(translate("dialog.leave"), () => this.dialog.close());
    return element("div", { class: "row end" }, leave, element("button", { class: "primary", text: translate("filing.keep") }));
  }

  #drawNew() {
    this.newField.hidden = this.select.value !== NEW;
    this.#tell("");
    if (!this.newField.hidden) this.name.focus();
  }

  #drawTags() {
    const items = this.chosen.map((tag) =>
      element("li", { class: "tag" }, element("bdi", { text: searchFor(tag) }), button(translate("filing.removeTag", { tag }), () => this.#remove(tag), { icon: "×" })),
    );
    fill(this.list, ...items);
    this.list.hidden = items.length === 0;
  }

  #remove(tag) {
    this.chosen = this.chosen.filter((each) => each !== tag);
    this.#tell("");
    this.#drawTags();
    this.tag.focus();
  }

  /** Enter in the field adds its tag; in an empty one it ends the dialog. */
  #press(event) {
    if (event.key !== "Enter" || isComposing(event) || this.tag.value.trim() === "") return;
    event.preventDefault();
    this.#add();
  }

  /** Adds the tag in the field. Returns whether the field is empty then. */
  #add() {
    const written = tagName(this.tag.value);
    const isThere = this.chosen.some((each) => isSameName(each, written));
    if (this.tag.value.trim() !== "" && written === "") return this.#refuse(this.tag, translate("filing.nothingSeen"));
    if (written !== "" && !isThere) {
      if (this.chosen.length >= MAX_TAGS) return this.#refuse(this.tag, translate("filing.tooMany", { count: MAX_TAGS }));
      this.chosen.push(this.tags.find((each) => isSameName(each, written)) ?? written);
    }
    this.tag.value = "";
    this.#tell("");
    this.#drawTags();
    this.tag.focus();
    return true;
  }

  #submit(event) {
    event.preventDefault();
    if (this.tag.value.trim() !== "" && !this.#add()) return;
    const folder = this.#folder();
    if (folder === null) return this.#refuse(this.name, translate("filing.nothingSeen"));
    this.dialog.close();
    this.keep({ folder, tags: this.chosen });
  }

  /** Returns the name of the chosen folder: undefined where there is none, and null where the new name is empty. */
  #folder() {
    const { value } = this.select;
    if (value === NONE) return undefined;
    if (value !== NEW) return value.slice(FOLDER.length);
    const name = folderName(this.name.value);
    return name === "" ? null : (this.folders.find((each) => isSameName(each, name)) ?? name);
  }

  #refuse(control, reason) {
    this.#tell(reason);
    control.setAttribute("aria-invalid", "true");
    control.focus();
    return false;
  }

  #tell(reason) {
    this.fault.textContent = reason;
    for (const control of [this.name, this.tag]) control.removeAttribute("aria-invalid");
  }
}
