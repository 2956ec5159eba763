// The sources that an answer cites, as footnotes: each has a number, and what the model has read of it.

import { pageAddress } from "../markdown/addresses.js";
import { translate } from "../texts/texts.js";

const MAX_QUOTE = 280; // characters
const MAX_TITLE = 500;
const SECTIONS = /^(?=【\d{1,6}】)/m;
const MARKER = /^【\d{1,6}】/;

/**
 * Returns the footnotes of an answer, in the order in which its text names them. `hosted` are the items of tools until
 * the answer: their texts name each source by the marker that the answer cites.
 */
export function footnotesOf(citations, hosted) {
  const footnotes = new Map();
  const sections = sectionsOf(hosted);
  for (const citation of citations) {
    const key = citation.marker || citation.url || citation.file_id || citation.filename;
    if (footnotes.has(key)) continue;
    footnotes.set(key, { number: footnotes.size + 1, ...sourceOf(citation), quote: quoteOf(citation, sections) });
  }
  return [...footnotes.values()];
}

/** Returns the text of an answer in which markers are the numbers of sources, and a list of these below it. */
export function textWithSources({ content, citations }) {
  const footnotes = footnotesOf(citations, []);
  if (footnotes.length === 0) return content;
  const numbers = new Map(footnotes.filter(({ marker }) => marker).map(({ marker, number }) => [marker, number]));
  const text = content.replace(/【\d{1,6}】/g, (marker) => (numbers.has(marker) ? `[${numbers.get(marker)}]` : marker));
  return `${text}\n\n${footnotes.map(({ number, title, url }) => `[${number}] ${[title, url].filter(Boolean).join(" ")}`).join("\n")}`;
}

function sourceOf({ type, marker, url, title, filename, file_id: fileId, container_id: containerId }) {
  const address = type === "url_citation" ? pageAddress(url ?? "") : null;
  return {
    marker,
    title: oneLine(title || filename || url || "").slice(0, MAX_TITLE).toWellFormed() || translate("sources.nameless"),
    url: address,
    host: address === null ? "" : new URL(address).host,
    fileId: fileId ?? null,
    containerId: containerId ?? null,
  };
}

/** Returns what the newest tool that showed each source has said of it, by markers. */
function sectionsOf(hosted) {
  const sections = new Map();
  for (const { output } of [...hosted].reverse()) {
    if (typeof output !== "string") continue;
    for (const section of output.split(SECTIONS)) {
      const marker = MARKER.exec(section)?.[0];
      if (marker !== undefined && !sections.has(marker)) sections.set(marker, section.slice(marker.length));
    }
  }
  return sections;
}

function quoteOf({ marker, title, filename }, sections) {
  const section = marker ? sections.get(marker) : undefined;
  return section === undefined ? "" : shortened(withoutHead(section, title || filename || ""));
}

/** Leaves out the lines above a text, which have the title and the address. */
function withoutHead(section, title) {
  const lines = section.trim().split("\n");
  const isHead = (line) => line.trim() === "" || /^https?:\/\/\S+$/.test(line);
  if (lines[0].startsWith(title)) lines.shift();
  while (lines.length > 0 && isHead(lines[0])) lines.shift();
  return lines.join(" ");
}

function shortened(text) {
  const characters = [...oneLine(text.slice(0, 20 * MAX_QUOTE))];
  return characters.length > MAX_QUOTE ? `${characters.slice(0, MAX_QUOTE).join("").trimEnd()}…` : characters.join("");
}

function oneLine(text) {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
}
