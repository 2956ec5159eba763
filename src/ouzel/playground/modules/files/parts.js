// Files of messages as parts of a chat's content.

import { kindOfUrl } from "./kinds.js";

/** Returns the part of a file that goes along with the message. */
export function partOfUrl({ name, url }) {
  const kind = kindOfUrl(url);
  if (kind === "picture") return { type: "image_url", image_url: { url } };
  if (kind === "video") return { type: "video_url", video_url: { url } };
  return { type: "file", file: { filename: name, file_data: url } };
}

/** Returns the part of an uploaded file. */
export function partOfFile({ id, name }) {
  return { type: "file", file: { file_id: id, filename: name } };
}
