// Conversations on the server, through /v1/conversations: their items are only ever added to.

import { Conversation } from "../chat/conversation.js";
import { pathOfFile } from "../files/attachment.js";
import { translate } from "../texts/texts.js";
import { itemsOf, messageOf, treeMetadata, treeParts } from "./items.js";
import { metadataOf, takeMetadata, withLabels } from "./metadata.js";

const MAX_ITEMS = 20; // the API's, of one request
const PAGE = 100;
const MAX_TITLE = 512;
const KEY = /^conv_[\w-]{1,100}$/;

/** Another browser has added to a conversation. */
export class WentOnElsewhere extends Error {}

/** Tells whether a key may be that of a conversation on a server. */
export function isServerKey(key) {
  return KEY.test(key);
}

export class ServerKeeper {
  constructor(api) {
    this.api = api;
  }

  /** Adds what is new of a conversation; `saved` are the ids of the nodes that are there, which is returned anew. `labels` are its folder and tags. */
  async save(conversation, saved, labels) {
    const metadata = { title: conversation.title.slice(0, MAX_TITLE) };
    if (saved.length > 0) await this.#check(conversation.id, saved.length);
    conversation.id ??= (await this.api.post("v1/conversations", { metadata })).id;
    const added = conversation.wholeNodes.filter((node) => !saved.includes(node.id) && isSettled(node.message));
    const items = added.flatMap((node) => itemsOf(node.message));
    for (let start = 0; start < items.length; start += MAX_ITEMS) {
      await this.api.post(`${pathOf(conversation.id)}/items`, { items: items.slice(start, start + MAX_ITEMS) });
    }
    const ids = [...saved, ...added.map((node) => node.id)];
    await this.api.post(pathOf(conversation.id), { metadata: withLabels({ ...metadata, ...describe(conversation, ids) }, labels) });
    return ids;
  }

  async load(id) {
    const { metadata, created_at: created } = await this.api.get(pathOf(id));
    const items = await this.#items(id);
    let start = 0;
    const nodes = treeParts(metadata, items.length).map(({ numItems, parent }, place) => {
      const own = items.slice(start, (start += numItems));
      return { id: place + 1, parent: parent < 0 ? null : parent + 1, message: messageOf(own) };
    });
    const activeLeaf = nodes[Number(metadata.active ?? nodes.length) - 1]?.id ?? null;
    const conversation = new Conversation({ id, title: metadata.title ?? translate("list.untitled"), updated: created * 1000, nodes, activeLeaf });
    takeMetadata(conversation, metadata);
    return conversation;
  }

  /** Tells the server the title, for other browsers. */
  async rename(id, title) {
    const { metadata } = await this.api.get(pathOf(id));
    await this.api.post(pathOf(id), { metadata: { ...metadata, title: title.slice(0, MAX_TITLE) } });
  }

  /** Tells the server the folder and the tags, for other browsers. */
  async label(id, labels) {
    const { metadata } = await this.api.get(pathOf(id));
    await this.api.post(pathOf(id), { metadata: withLabels(metadata, labels) });
  }

  async remove(id) {
    await this.api.delete(pathOf(id));
  }

  /** Deletes a conversation, unless its id is null, and files while the page is closed. */
  removeUnwatched(id, fileIds) {
    if (id !== null) this.api.deleteUnwatched(pathOf(id));
    for (const fileId of fileIds) this.api.deleteUnwatched(pathOfFile(fileId));
  }

  /** Deletes uploaded files; those that are gone already are no error. */
  async removeFiles(ids) {
    for (const id of ids) await this.api.delete(pathOfFile(id)).catch(ignoreMissing);
  }

  /** Throws where the conversation does not have the messages that this page saved, and no others. */
  async #check(id, numSaved) {
    const { metadata } = await this.api.get(pathOf(id));
    const numParts = treeParts(metadata, 0).length;
    if (numParts > 0 && numParts !== numSaved) throw new WentOnElsewhere();
  }

  async #items(id) {
    const items = [];
    for (let after = ""; ; ) {
      const page = await this.api.get(`${pathOf(id)}/items?order=asc&limit=${PAGE}${after}`);
      items.push(...page.data);
      if (!page.has_more) return items;
      after = `&after=${encodeURIComponent(page.last_id)}`;
    }
  }
}

function pathOf(id) {
  return `v1/conversations/${encodeURIComponent(id)}`;
}

export function ignoreMissing(error) {
  if (error.status !== 404) throw error;
}

/** An answer that failed before its first word is not kept. */
export function isSettled({ role, content, reasoning, toolCalls, images, files, hosted }) {
  return ["tool", "approval"].includes(role) || Boolean(content || reasoning) || toolCalls.length + images.length + files.length + hosted.length > 0;
}

function describe(conversation, ids) {
  const placeOf = (id) => ids.indexOf(id);
  const parts = ids.map((id) => {
    const node = conversation.node(id);
    const stored = conversation.path(node.parent).findLast((each) => ids.includes(each.id)); // a failed answer is not
    return { numItems: itemsOf(node.message).length, parent: stored === undefined ? -1 : placeOf(stored.id) };
  });
  const shown = conversation.path().findLast((node) => ids.includes(node.id));
  return { ...treeMetadata(parts), ...metadataOf(conversation, ids), active: String(placeOf(shown?.id) + 1) };
}
