// Import, export and deletion of all conversations.

import { confirmed, openDialog } from "../dialogs/dialog.js";
import { button, downloadBlob, element, field } from "../dom.js";
import { exportAll } from "../storage/export.js";
import { Duplicates } from "../storage/import/duplicates.js";
import { importFiles } from "../storage/import/recognise.js";
import { shortName } from "../files/names.js";
import { translate } from "../texts/texts.js";

const TELL_MS = 500; // between two lines about how far it is, which screen readers read

export function manageConversations({ library, chat }) {
  const controller = new AbortController();
  const state = element("div", { class: "manage-state", role: "status" });
  const tell = (...lines) => state.replaceChildren(...lines.map((text) => element("p", { text })));
  const { signal } = controller;
  const count = library.records.shown.length;
  const picker = element("input", { type: "file", multiple: true, accept: ".json,application/json", id: "import-picker" });
  const doExport = button(translate("list.exportAll"), () => once(() => saveAll(library, { tell, signal })));
  const doDelete = button(translate("list.deleteAll"), () => once(() => deleteAll(library, chat, { tell, signal })), { class: "danger" });
  picker.addEventListener("change", () => once(() => bringIn(library, [...picker.files], { tell, signal })));
  const controls = [picker, doExport, doDelete];
  const enable = () => {
    picker.disabled = false;
    doExport.disabled = doDelete.disabled = library.records.shown.length === 0;
  };

  async function once(act) {
    const focused = document.activeElement;
    for (const control of controls) control.disabled = true;
    try {
      await act();
    } catch (error) {
      tell(error.message);
    }
    picker.value = "";
    enable();
    if (!dialog.open) return;
    (focused?.disabled ? picker : focused)?.focus();
  }

  enable();
  const dialog = openDialog(
    translate("list.manage"),
    [
      element("p", { text: translate("list.count", { count }) }),
      field(translate("list.import"), picker, translate("list.importHint")),
      element("div", { class: "row" }, doExport, doDelete),
      state,
    ],
    { onClose: () => controller.abort() },
  );
}

async function bringIn(library, files, { tell, signal }) {
  tell(translate("list.reading"));
  const result = await importFiles(files, {
    add: (read) => library.add(read),
    duplicates: new Duplicates(library.records),
    onProgress: seldom((number, all) => tell(translate("list.importProgress", { number, all }))),
    signal,
  }).finally(() => library.records.tellAll());
  const refused = [...result.refused].map(([reason, { count, name }]) => translate("list.notImported", { count, name: shortName(name), reason: translate(reason) }));
  const known = result.numKnown > 0 ? [translate("list.alreadyThere", { count: result.numKnown })] : [];
  const failed = result.failure === null ? [] : [translate("list.importFailed", { why: result.failure.message })];
  tell(translate("list.imported", { count: result.numKept }), ...known, ...refused, ...failed);
}

async function saveAll(library, { tell, signal }) {
  const onProgress = seldom((number, all) => tell(translate("list.exportProgress", { number, all })));
  const { blob, numSaved, failed } = await exportAll(library, { onProgress, signal });
  if (signal.aborted) return;
  downloadBlob(`ouzel-${new Date().toISOString().slice(0, 10)}.json`, blob);
  tell(translate("list.exported", { count: numSaved }), ...failed.map(({ title, reason }) => translate("list.notExported", { title, reason })));
}

async function deleteAll(library, chat, { tell, signal }) {
  const records = library.records.shown;
  const numOnServer = records.filter(({ isOnServer }) => isOnServer).length;
  const question = [translate("list.deleteAllQuestion", { count: records.length }), numOnServer > 0 ? translate("list.deleteAllServer", { count: numOnServer }) : ""];
  if (!(await confirmed(translate("list.deleteAll"), question.filter(Boolean).join(" "), translate("list.deleteThem")))) return;
  const onProgress = seldom((number, all) => tell(translate("list.deleteProgress", { number, all })));
  const failed = [];
  for (const [index, { key, title }] of records.entries()) {
    if (signal.aborted) break;
    chat.drop(key);
    await library.remove(key).catch((error) => failed.push({ title, reason: error.message }));
    onProgress(index + 1, records.length);
  }
  tell(translate("list.deleted", { count: records.length - failed.length }), ...failed.slice(0, 5).map(({ title, reason }) => translate("list.notDeleted", { title, reason })));
}

/** Returns a function that does nothing where it was called a moment ago. */
function seldom(act) {
  let last = 0;
  return (...values) => {
    if (performance.now() - last < TELL_MS) return;
    last = performance.now();
    act(...values);
  };
}
