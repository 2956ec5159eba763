// The tools that the server ran for an answer: a card for each call, which asks where a person must allow it.

import { button, element } from "../dom.js";
import { endingOf, shortName } from "../files/names.js";
import { translate, translateParts } from "../texts/texts.js";
import { hostedParts } from "./hosted_texts.js";

export class HostedView {
  #decisions = new Map(); // whether a person allows a call, by the id of its request

  /**
   * `onApprovals` is called with a decision about each call that waits, once there are all, and `onDownload` with a file
   * in a sandbox that a person wants.
   */
  constructor(onApprovals, onDownload) {
    Object.assign(this, { onApprovals, onDownload });
    this.element = element("div", { class: "tool-calls hosted" });
  }

  /** Draws the items; `isOpen` says that calls wait for a decision. */
  draw(items, isOpen) {
    this.items = items;
    const opened = new Set([...this.element.querySelectorAll("details[open]")].map((each) => each.dataset.item));
    this.element.replaceChildren(...items.map((item) => this.#card(item, isOpen)));
    for (const each of this.element.querySelectorAll("details")) each.open = opened.has(each.dataset.item);
  }

  get #waiting() {
    return this.items.filter(({ type }) => type === "mcp_approval_request");
  }

  #card(item, isOpen) {
    const { title, details, result, isFailed } = hostedParts(item);
    const isRequest = item.type === "mcp_approval_request";
    const code = element("code", { text: title });
    const name = element("div", { class: "tool-name" }, ...(isRequest && isOpen ? translateParts("tools.mayCall", { call: code }) : [code]));
    const isList = item.type === "mcp_list_tools";
    const text = details && !isList ? element("pre", { class: "tool-arguments", text: details }) : null;
    const answer = isList ? details : result;
    const label = translate(isFailed ? "tools.failed" : isList ? "tools.tools" : "tools.result");
    return element(
      "section",
      { class: `tool-call${isFailed ? " failed" : ""}`, "aria-label": translate(isRequest ? "tools.requestToCall" : "tools.callNamed", { name: title }) },
      name,
      text,
      answer ? folded(label, answer, item.id) : null,
      ...picturesOf(item),
      this.#newFiles(item),
      isRequest && isOpen ? this.#question(item) : null,
    );
  }

  /** Returns a list of the files that code has made; null without any. */
  #newFiles({ sources }) {
    const files = (sources ?? []).filter(({ container_id: containerId, file_id: fileId }) => containerId && fileId);
    if (files.length === 0) return null;
    const items = files.map(({ title, container_id: containerId, file_id: fileId }) => {
      const get = button(translate("tools.download", { name: shortName(title) }), () => this.onDownload({ containerId, fileId, name: title }), { icon: "⤓" });
      const sign = element("span", { class: "file-sign", "aria-hidden": "true", text: endingOf(title) || translate("tools.file") });
      return element("li", { class: "file" }, sign, element("bdi", { class: "file-name", title: title.slice(0, 300), text: shortName(title) }), get);
    });
    return element("ul", { class: "attachments new-files", "aria-label": translate("tools.newFiles") }, ...items);
  }

  #question({ id }) {
    const decided = this.#decisions.get(id);
    const choose = (label, approve, properties) => button(label, () => this.#decide(id, approve), { "aria-pressed": String(decided === approve), ...properties });
    const rest = decided === undefined ? null : element("span", { class: "muted", text: translate("tools.waitsForDecisions") });
    return element("div", { class: "row approval", data: { request: id } }, choose(translate("tools.allow"), true, { class: "primary" }), choose(translate("tools.doNotAllow"), false, {}), rest);
  }

  #decide(id, approve) {
    this.#decisions.set(id, approve);
    const waiting = this.#waiting;
    if (waiting.every((each) => this.#decisions.has(each.id))) {
      return this.onApprovals(waiting.map((each) => ({ id: each.id, approve: this.#decisions.get(each.id) })));
    }
    this.draw(this.items, true);
    const next = waiting.find((each) => !this.#decisions.has(each.id));
    this.element.querySelector(`[data-request="${CSS.escape(next.id)}"] button`).focus();
  }
}

function folded(label, text, id) {
  return element("details", { class: "tool-output", data: { item: id } }, element("summary", { text: label }), element("pre", { text }));
}

/** Pictures that code has drawn; those at other addresses are not fetched. */
function picturesOf({ outputs }) {
  const urls = (outputs ?? []).map(({ url }) => url ?? "").filter((url) => url.startsWith("data:image/"));
  return urls.map((url) => element("img", { src: url, alt: translate("tools.pictureOfCode"), class: "picture" }));
}
