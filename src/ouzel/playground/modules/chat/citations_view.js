// The sources that an answer cites, below its text: each with the marker by which the text names it.

import { element } from "../dom.js";
import { safeAddress } from "../markdown/addresses.js";

/** Returns a list of the sources; null without any. A source that is cited twice stands there once. */
export function citationsView(citations) {
  const sources = new Map(citations.map((citation) => [citation.marker || citation.url || citation.filename, citation]));
  if (sources.size === 0) return null;
  const items = [...sources.values()].map((citation) => element("li", {}, citation.marker ? `${citation.marker} ` : "", linkOf(citation)));
  return element("div", { class: "citations" }, element("h3", { text: "Sources" }), element("ul", {}, ...items));
}

function linkOf({ type, url, title, filename }) {
  const address = type === "url_citation" ? safeAddress(url ?? "") : null;
  const text = title || filename || url || "A source without a name";
  if (address === null) return element("span", { text });
  return element("a", { href: address, text, title: address, target: "_blank", rel: "noopener noreferrer", referrerpolicy: "no-referrer" });
}
