// One message of the thread. What a model or a person wrote becomes text nodes, never HTML.

import { button, copyFrom, element, fill, isComposing } from "../dom.js";
import { attachmentViews, sentFileView } from "../files/sent_view.js";
import { MarkdownView } from "../markdown/view.js";
import { translate } from "../texts/texts.js";
import { attachmentList, Attachments } from "./attachments.js";
import { branchesView } from "./branches.js";
import { CitationsView } from "./citations_view.js";
import { footnotesOf, textWithSources } from "./footnotes.js";
import { decisionText } from "./hosted_texts.js";
import { HostedView } from "./hosted_view.js";
import { figuresNote, notesOf } from "./notes.js";
import { readingButton } from "./reading_button.js";
import { tokenView } from "./token_view.js";
import { ToolCallsView } from "./tool_calls_view.js";
import { WaitNote } from "./wait_note.js";

const NAMES = { user: "message.you", assistant: "message.answer", tool: "message.toolResult", system: "message.system", approval: "message.yourDecision" };

export class MessageView {
  #content = element("div", { class: "content" });
  #reasoning = element("details", { class: "reasoning", hidden: true }, element("summary", { text: translate("message.reasoning") }));
  #notes = element("div", { class: "notes" });
  #footer = element("footer", { class: "message-footer" });
  #markdown = null;
  #thought = null;
  #calls = null;
  #hosted = null;
  #citations = null;
  #numCited = 0; // citations that have footnotes
  #waitNote = null;
  #frame = null; // in which calls are drawn
  #place = null;
  #settledAs = ""; // what of the place can be seen

  /** `actions` are what a person can do with a message: the functions of Chat. */
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    const { role } = node.message;
    const name = Object.hasOwn(NAMES, role) ? translate(NAMES[role]) : role;
    const { model } = node.message;
    const heading = element("h2", { class: "role" }, name, ...(model === null ? [] : [" · ", element("bdi", { class: "made-by", text: model })]));
    this.element = element("article", { class: `message ${role}`, "aria-label": name, tabindex: -1 }, heading, this.#reasoning, this.#content, this.#notes, this.#footer);
    this.#drawContent();
  }

  /** Takes what is new of a streaming answer. */
  append({ content, reasoning }) {
    if (reasoning) this.#think(reasoning);
    if (content) this.#markdown.append(content);
    const { toolCalls, hosted } = this.node.message;
    if (toolCalls.length + hosted.length > 0) this.#frame ??= requestAnimationFrame(() => this.#drawTools());
  }

  /** Draws the calls of an answer that streams; each word of it would be too often. */
  #drawTools() {
    this.#frame = null;
    if (this.node.message.toolCalls.length > 0) this.#drawCalls(false);
    this.#drawHosted(false);
  }

  /** Shows the wait for another try of the request; null takes it away. */
  showWait(wait) {
    if (this.#waitNote?.wait === (wait ?? undefined)) return;
    const hadFocus = this.#waitNote?.hasFocus ?? false;
    this.#waitNote?.close();
    this.#waitNote = wait === null ? null : new WaitNote(wait, () => this.actions.stop());
    fill(this.#notes, this.#waitNote?.element);
    if (hadFocus) this.element.focus({ preventScroll: true });
  }

  /** Draws what stands around the text, once the message is whole. `place` says where in the tree it stands. */
  settle(place) {
    const settledAs = `${place.siblings.map((node) => node.id)} ${place.isLast} ${place.answeredBy} ${place.unseen}`;
    if (settledAs === this.#settledAs) return; // to draw the same again would take the focus, and tell alerts again
    this.#settledAs = settledAs;
    this.#place = place;
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    this.#markdown?.finish();
    this.#thought?.finish();
    const { message } = this.node;
    if (message.toolCalls.length > 0) this.#drawCalls(place.isLast && message.error === null);
    this.#drawHosted(place.isLast && message.error === null && message.finishReason !== "stopped");
    this.#cite();
    fill(this.#notes, this.#citations?.list(), ...notesOf(this.node, place, this.actions));
    fill(this.#footer, branchesView(this.node, place.siblings, (there) => this.actions.show(there)), ...this.#buttons(), figuresNote(message));
  }

  /** Gives the focus to the button of this label, or to the message where it has none. */
  focus(label) {
    const same = [...this.#footer.querySelectorAll("button:not(:disabled)")].find((each) => labelOf(each) === label);
    (same ?? this.element).focus({ preventScroll: true });
  }

  #drawContent() {
    const { message } = this.node;
    const images = attachmentViews(message.images);
    const files = message.files.map((file) => sentFileView(file, () => this.actions.deleteFile(file)));
    fill(
      this.#content,
      images.length > 0 ? element("div", { class: "pictures" }, ...images) : null,
      files.length > 0 ? element("ul", { class: "attachments", "aria-label": translate("composer.files") }, ...files) : null,
    );
    if (message.role === "approval") return this.#content.append(element("div", { class: "plain", text: message.approvals.map(decisionText).join("\n") }));
    if (message.role !== "assistant") return this.#content.append(element("div", { class: "plain", dir: "auto", text: message.content }));
    const prose = element("div", { class: "markdown" });
    this.#content.append(prose);
    this.#citations = new CitationsView(prose, this.actions.download);
    this.#numCited = 0;
    this.#markdown = new MarkdownView(prose, () => this.#cite());
    this.#markdown.append(message.content);
    if (message.reasoning) this.#think(message.reasoning);
  }

  /** Makes footnotes of the sources that the text cites so far. */
  #cite() {
    const { citations } = this.node.message;
    if (citations.length === 0) return;
    if (this.#numCited !== citations.length) this.#citations.footnotes = footnotesOf(citations, this.actions.hostedUntil(this.node));
    this.#numCited = citations.length;
    this.#citations.link();
  }

  /** Draws the message again after a change of its files. */
  drawFiles() {
    if (this.#content.querySelector(".editor") === null) this.#drawAgain();
  }

  #think(text) {
    this.#reasoning.hidden = false;
    if (this.#thought === null) {
      const prose = element("div", { class: "markdown" });
      this.#reasoning.append(prose);
      this.#thought = new MarkdownView(prose);
    }
    this.#thought.append(text);
  }

  #drawCalls(isOpen) {
    if (this.#calls === null) {
      this.#calls = new ToolCallsView(this.node.message.toolCalls, (results) => this.actions.takeResults(this.node, results));
      this.#content.append(this.#calls.element);
    }
    this.#calls.draw(isOpen);
  }

  /** Draws what the server's tools did, above the text; `isOpen` says that calls wait for a decision. */
  #drawHosted(isOpen) {
    const { hosted } = this.node.message;
    if (hosted.length === 0) return;
    if (this.#hosted === null) {
      this.#hosted = new HostedView((approvals) => this.actions.takeApprovals(this.node, approvals), this.actions.download);
      this.#content.prepend(this.#hosted.element);
    }
    this.#hosted.draw(hosted, isOpen);
  }

  #buttons() {
    const { role, content, tokens, finishReason, toolCalls, hosted } = this.node.message;
    const { isLast } = this.#place;
    const copy = button(translate("message.copy"), (event) => copyFrom(event.currentTarget, textWithSources(this.node.message)));
    const edit = button(translate("message.edit"), () => this.#edit());
    if (role === "user" || role === "tool") return [copy, edit];
    if (role === "approval") return [];
    const isCut = isLast && hosted.length === 0 && ["length", "stopped", "broken"].includes(finishReason) && content !== "" && toolCalls.length === 0;
    return [
      copy,
      readingButton(this.node, { article: this.element, prose: this.#content.querySelector(":scope > .markdown"), actions: this.actions }),
      edit,
      button(translate("message.regenerate"), () => this.actions.regenerate(this.node)),
      this.actions.hasOtherModels ? button(translate("message.regenerateWith"), () => this.actions.regenerateWith(this.node), { icon: "▾", "aria-haspopup": "dialog" }) : null,
      isCut ? button(translate("message.continue"), () => this.actions.continueAnswer(this.node)) : null,
      tokens ? this.#tokensButton(tokens) : null,
      button(translate("message.request"), () => this.actions.showRequest(this.node)),
    ];
  }

  #tokensButton(tokens) {
    const shown = () => this.#content.querySelector(".token-view");
    const toggle = button(translate("message.tokens"), () => {
      const isToShow = shown() === null;
      toggle.setAttribute("aria-pressed", String(isToShow));
      this.#content.querySelector(".markdown").hidden = isToShow;
      if (isToShow) this.#content.prepend(tokenView(tokens));
      else shown().remove();
    });
    toggle.setAttribute("aria-pressed", String(shown() !== null));
    return toggle;
  }

  #edit() {
    const { message } = this.node;
    const area = element("textarea", { class: "editor", rows: Math.min(12, message.content.split("\n").length + 1), "aria-label": translate("message.theMessage") });
    area.value = message.content;
    const attachments = new Attachments(attachmentList(), () => area.focus());
    attachments.addSent(message);
    const close = () => this.#drawAgain();
    const leave = () => {
      close();
      this.focus(translate("message.edit"));
    };
    const send = () => this.actions.edit(this.node, area.value, attachments.sent) && close();
    const label = translate(message.role === "assistant" ? "message.keepAsBranch" : "message.sendAsBranch");
    area.addEventListener("keydown", (event) => {
      if (isComposing(event)) return;
      if (event.key === "Escape") {
        event.stopPropagation(); // an answer that is being made goes on
        leave();
      }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    });
    fill(this.#footer);
    const buttons = element("div", { class: "row" }, button(label, send, { class: "primary" }), button(translate("message.leaveIt"), leave));
    fill(this.#content, attachments.list, area, buttons);
    area.focus();
  }

  #drawAgain() {
    this.#calls = null;
    this.#hosted = null;
    this.#thought = null;
    this.#reasoning.querySelector(".markdown")?.remove();
    this.#drawContent();
    this.#settledAs = "";
    this.settle(this.#place);
  }
}

export { closeSourceCard } from "./source_card.js";

/** Returns what a button is called. */
export function labelOf(control) {
  return control.getAttribute("aria-label") ?? control.textContent;
}
