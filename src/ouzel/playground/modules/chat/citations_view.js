// The sources of an answer: a list below its text, to which the footnotes in the text lead, and from which one comes back.

import { button, element } from "../dom.js";
import { shortName } from "../files/names.js";
import { formatNumber, translate } from "../texts/texts.js";
import { describeBySource } from "./source_card.js";

let numViews = 0; // each has ids of its own

export class CitationsView {
  #prefix;
  footnotes = [];

  /** `text` is the element with the markers. `onDownload` is called with a file in a sandbox that a person wants. */
  constructor(text, onDownload) {
    numViews += 1;
    this.#prefix = `source-${numViews}`;
    Object.assign(this, { text, onDownload });
  }

  /** Makes links of the markers in the text. Markers without a source stay as they are. */
  link() {
    const byMarker = new Map(this.footnotes.filter(({ marker }) => marker).map((each) => [each.marker, each]));
    for (const marker of this.text.querySelectorAll(".marker")) {
      const footnote = byMarker.get(marker.textContent);
      if (footnote && marker.closest("a") === null) marker.replaceChildren(this.#reference(footnote));
    }
  }

  /** Returns the list of the sources; null without any. */
  list() {
    if (this.footnotes.length === 0) return null;
    const id = `${this.#prefix}-title`;
    const list = element("ol", {}, ...this.footnotes.map((each) => this.#item(each)));
    return element("section", { class: "citations", "aria-labelledby": id }, element("h3", { id, text: translate("sources.sources") }), list);
  }

  #reference(footnote) {
    const { number, title } = footnote;
    const link = element("a", { href: `#${this.#id(number)}`, "aria-label": translate("sources.source", { number, title: shortName(title) }), text: formatNumber(number), data: { source: number } });
    link.addEventListener("click", (event) => {
      event.preventDefault(); // the address of the page stays as it is
      const item = document.getElementById(this.#id(number));
      item?.scrollIntoView({ block: "nearest" });
      item?.focus({ preventScroll: true });
    });
    describeBySource(link, footnote);
    return element("sup", { class: "footnote" }, link);
  }

  #item({ number, title, url, host, fileId, containerId }) {
    const sign = element("span", { class: "source-number", "aria-hidden": "true", text: formatNumber(number) });
    const name =
      url === null
        ? element("bdi", { class: "source-name", text: title })
        : element("a", { href: url, class: "source-name", text: title, title: url, target: "_blank", rel: "noopener noreferrer", referrerpolicy: "no-referrer" });
    const get = containerId === null ? null : button(translate("sources.download", { title: shortName(title) }), () => this.onDownload({ containerId, fileId, name: title }), { icon: "⤓" });
    const back = this.text.querySelector(`[data-source="${number}"]`) ? button(translate("sources.back", { number }), () => this.#goBack(number), { icon: "↩", class: "back" }) : null;
    return element("li", { id: this.#id(number), tabindex: -1 }, sign, name, host ? element("span", { class: "source-host", text: host }) : null, get, back);
  }

  #goBack(number) {
    const link = this.text.querySelector(`[data-source="${number}"]`);
    link.scrollIntoView({ block: "nearest" });
    link.focus({ preventScroll: true });
  }

  #id(number) {
    return `${this.#prefix}-${number}`;
  }
}
