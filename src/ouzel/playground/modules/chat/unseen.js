// What the chosen model does not see of earlier messages is left out of requests, and said at the message.

import { isReadBy, kindOfFile, kindOfUrl, nameKinds } from "../files/kinds.js";
import { isRead } from "../storage/items.js";
import { translate } from "../texts/texts.js";

// What the model reads in the place of a file.
const MARKS = {
  picture: "[The user sent a picture here, which you cannot see.]",
  video: "[The user sent a video here, which you cannot see.]",
  pdf: "[The user sent a PDF here, which you cannot read.]",
};

/** Returns a message without files that the model of the situation does not see; a mark stands for each of them. */
export function withoutUnseen(said, situation) {
  const isSeen = (kind) => sees(kind, situation);
  const unseen = kindsOf(said).filter((kind) => !isSeen(kind));
  if (unseen.length === 0) return said;
  const images = said.images.filter(({ url }) => isSeen(kindOfUrl(url)));
  const files = said.files.filter((file) => !isRead(file) || isSeen(kindOfFile(file)));
  return { ...said, images, files, content: [...unseen.map((kind) => MARKS[kind]), said.content].filter(Boolean).join("\n\n") };
}

/** Says what of a message the model does not see; empty where it sees all. */
export function unseenText(said, situation) {
  // The model reads the transcript of a sound, which is a text beside it.
  const unseen = new Set(kindsOf(said).filter((kind) => kind !== "sound" && !sees(kind, situation)));
  return unseen.size === 0 ? "" : translate("message.unseen", { model: situation.model.name, kinds: nameKinds([...unseen]) });
}

function kindsOf({ images, files }) {
  return [...images.map(({ url }) => kindOfUrl(url)), ...files.filter(isRead).map(kindOfFile)];
}

/** Responses, in which the server runs tools, have no videos. */
function sees(kind, { model, usesServerTools }) {
  return isReadBy(kind, model) && !(kind === "video" && usesServerTools);
}
