// Files that the server has: those that a person has uploaded are deleted, and those that code has made are fetched.

import { announce } from "../announcer.js";
import { confirmed } from "../dialogs/dialog.js";
import { downloadBlob } from "../dom.js";
import { translate } from "../texts/texts.js";
import { pathOfFile } from "./attachment.js";
import { safeName, shortName } from "./names.js";

/** Deletes an uploaded file, if a person agrees; returns whether it is gone. */
export async function deleteUploaded(api, { id, name }) {
  const question = translate("files.deleteQuestion", { name: shortName(name) });
  if (!(await confirmed(translate("files.deleteTitle"), question, translate("files.deleteIt")))) return false;
  try {
    await api.delete(pathOfFile(id));
  } catch (error) {
    if (error.status !== 404) throw error; // it has expired, or another client has deleted it
  }
  announce(translate("files.isDeleted"));
  return true;
}

/** Offers a file in a sandbox to keep. */
export async function downloadFromSandbox(api, { containerId, fileId, name }) {
  const path = `v1/containers/${encodeURIComponent(containerId)}/files/${encodeURIComponent(fileId)}/content`;
  try {
    downloadBlob(safeName(name), await api.blob(path));
  } catch (error) {
    throw error.status === 404 ? new Error(translate("files.sandboxEnded")) : error;
  }
}
