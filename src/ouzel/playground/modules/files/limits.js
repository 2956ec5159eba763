// Why a file cannot be sent: the model does not read its kind, or it is beyond a limit of the server or of the model.

import { translate } from "../texts/texts.js";
import { isForModel, kindOfUrl, whyUnread } from "./kinds.js";
import { sizeText, tokensText } from "./names.js";

const REST_BYTES = 65_536; // of the body of a request, for all that is no file

/** Returns how much of a request the files of messages take: the numbers of pictures and videos, and bytes. */
export function roomTaken(messages) {
  const room = { numPictures: 0, numVideos: 0, numBytes: 0 };
  for (const { url } of messages.flatMap(({ images }) => images)) {
    const kind = kindOfUrl(url);
    if (kind !== "sound") take(room, kind, url.length); // of earlier sounds, requests have the transcripts
  }
  return room;
}

/** Adds a file to what is taken. */
export function takeRoom(room, item) {
  if (isForModel(item.use)) take(room, item.kind, bytesAlong(item));
}

/** Says why a file cannot be sent, where `room` is taken before it; empty where it can. */
export function refusalOf(item, { model, server, usesServerTools }, room) {
  const { kind, use, uses, size, numTokens } = item;
  if (!uses.includes(use)) return whyUnread(kind, model);
  const limit = maxBytes(item, server);
  if (size > limit) return translate("files.tooLarge", { limit: sizeText(limit) });
  if (!isForModel(use)) return "";
  if (kind === "video" && usesServerTools) return translate("files.noVideosWithTools");
  if (kind === "picture" && room.numPictures >= server.maxPictures) return translate("files.tooManyPictures", { count: server.maxPictures });
  if (kind === "video" && room.numVideos >= server.maxVideos) return translate("files.tooManyVideos", { count: server.maxVideos });
  const numBytes = bytesAlong(item);
  if (numBytes > 0 && room.numBytes + numBytes > server.maxBodyBytes - REST_BYTES) {
    return translate("files.tooLargeTogether", { limit: sizeText(decodedBytes(server.maxBodyBytes)) });
  }
  if (model.contextLength !== null && numTokens > model.contextLength) {
    return translate("files.tooManyTokens", { tokens: tokensText(item), model: model.name, limit: model.contextLength });
  }
  return "";
}

/** Tells whether a sound goes along with its transcript. A longer one has no room in the body of a request. */
export function isSoundKept({ size, server }) {
  return size <= decodedBytes(server.maxBodyBytes - REST_BYTES);
}

function bytesAlong(item) {
  const isLeftOut = !item.goesAlong || (item.kind === "sound" && !isSoundKept(item));
  return isLeftOut ? 0 : encodedBytes(item.size);
}

/** Returns how long a file may be. */
function maxBytes({ kind, use, goesAlong }, server) {
  const limits = [];
  if (kind === "sound" && isForModel(use)) limits.push(server.maxSoundBytes ?? Infinity);
  else if (isForModel(use)) limits.push(server.maxMediaBytes);
  if (goesAlong && kind !== "sound") limits.push(decodedBytes(server.maxBodyBytes - REST_BYTES));
  if (!goesAlong || use === "both") limits.push(server.maxFileBytes);
  return Math.min(...limits);
}

function take(room, kind, numBytes) {
  if (kind === "picture") room.numPictures += 1;
  if (kind === "video") room.numVideos += 1;
  room.numBytes += numBytes;
}

/** Returns the length of a file as base64. */
function encodedBytes(numBytes) {
  return Math.ceil(numBytes / 3) * 4;
}

function decodedBytes(numBytes) {
  return Math.floor((numBytes * 3) / 4);
}
