// A page or a picture in code, as a browser shows it. It runs in a frame of another origin that has no network: it can
// neither read the chat nor send anything away. See preview.html, and its policy on the server.

import { element } from "../dom.js";
import { translate } from "../texts/texts.js";

const PAGE = new URL("../../preview.html", import.meta.url).href;
const OPAQUE = "null"; // the name of an origin that has none

/** Returns the element with the frame. */
export function previewView(code) {
  const frame = element("iframe", {
    src: PAGE,
    class: "preview",
    title: translate("markdown.previewTitle"),
    sandbox: "allow-scripts",
    allow: "",
    referrerpolicy: "no-referrer",
  });
  const send = (event) => {
    if (event.source !== frame.contentWindow || event.origin !== OPAQUE || event.data !== "ready") return;
    removeEventListener("message", send);
    frame.contentWindow.postMessage({ html: code }, "*"); // an opaque origin cannot be named
  };
  addEventListener("message", send);
  return frame;
}
