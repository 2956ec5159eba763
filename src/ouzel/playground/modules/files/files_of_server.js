// Files that the server has: those that a person has uploaded are deleted, and those that code has made are fetched.

import { announce } from "../announcer.js";
import { confirmed } from "../dialogs/dialog.js";
import { downloadBlob } from "../dom.js";
import { pathOfFile } from "./attachment.js";
import { safeName, shortName } from "./names.js";

/** Deletes an uploaded file, if a person agrees; returns whether it is gone. */
export async function deleteUploaded(api, { id, name }) {
  if (!(await confirmed("Delete the file", `The model can no longer use “${shortName(name)}”.`, "Delete it"))) return false;
  try {
    await api.delete(pathOfFile(id));
  } catch (error) {
    if (error.status !== 404) throw error; // it has expired, or another client has deleted it
  }
  announce("The file is deleted");
  return true;
}

/** Offers a file in a sandbox to keep. */
export async function downloadFromSandbox(api, { containerId, fileId, name }) {
  const path = `v1/containers/${encodeURIComponent(containerId)}/files/${encodeURIComponent(fileId)}/content`;
  try {
    downloadBlob(safeName(name), await api.blob(path));
  } catch (error) {
    throw error.status === 404 ? new Error("The file is gone: sandboxes end some time after their last call.") : error;
  }
}
