// Files of messages that were sent: pictures, players, and cards of others.

import { button, element } from "../dom.js";
import { addStyles } from "../lazy_styles.js";
import { translate } from "../texts/texts.js";
import { nameView } from "./chip.js";
import { kindOfUrl, USES } from "./kinds.js";
import { endingOf, shortName, sizeText } from "./names.js";

/** Returns the card of a file that was sent. `onDelete` is called when a person wants it gone from the server. */
export function sentFileView(file, onDelete) {
  const { name, size, use, isDeleted } = file;
  const said = isDeleted ? translate("files.deleted") : use === "model" ? "" : USES[use];
  const state = element("span", { class: "file-state", text: [sizeText(size ?? null), said].filter(Boolean).join(" · ") });
  const sign = element("span", { class: "file-sign", "aria-hidden": "true", text: endingOf(name) || translate("files.sign") });
  const remove = isDeleted ? null : button(translate("files.deleteFromServer", { name: shortName(name) }), onDelete, { icon: "×", class: "remove" });
  return element("li", { class: `file${isDeleted ? " gone" : ""}` }, sign, element("span", { class: "file-text" }, nameView(name), state), remove);
}

/** Returns the views of what went along with a message. A sound and its transcript are one. */
export function attachmentViews(images) {
  const views = [];
  for (let place = 0; place < images.length; place += 1) {
    const [image, next] = images.slice(place, place + 2);
    const hasTranscript = kindOfUrl(image.url) === "sound" && isTranscriptOf(next, image);
    views.push(hasTranscript ? heardView(image, next) : attachmentView(image));
    if (hasTranscript) place += 1;
  }
  return views;
}

/** Returns a player of a sound. It goes where the browser cannot play the format. */
export function soundView(name, url) {
  addStyles("speech.css");
  const player = element("audio", { src: url, controls: true, preload: "metadata", class: "sound", "aria-label": translate("speech.player", { name: shortName(name) }) });
  player.addEventListener("error", () => player.remove());
  return player;
}

/** Returns a picture, a video or a sound, or the name of another file that goes along with a message. */
function attachmentView({ name, url }) {
  const kind = kindOfUrl(url);
  if (kind === "picture") return element("img", { src: url, alt: name, title: name, class: "picture" });
  if (kind === "video") return element("video", { src: url, controls: true, preload: "metadata", "aria-label": name, title: name, class: "picture" });
  return kind === "sound" ? element("div", { class: "heard" }, nameView(name), soundView(name, url)) : nameView(name);
}

function isTranscriptOf(image, sound) {
  return image !== undefined && image.name === `${sound.name}.txt` && kindOfUrl(image.url) === "text";
}

/** The transcript is read when it is opened. */
function heardView(sound, transcript) {
  const text = element("div", { class: "plain", dir: "auto" });
  const details = element("details", {}, element("summary", { text: translate("speech.transcript") }), text);
  details.addEventListener("toggle", () => (text.textContent ||= textOf(transcript.url)));
  return element("div", { class: "heard" }, nameView(sound.name), soundView(sound.name, sound.url), details);
}

function textOf(url) {
  const bytes = Uint8Array.from(atob(url.slice(url.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}
