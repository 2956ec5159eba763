// Collections of files that the model can search: vector stores of this API key.

import { translate } from "../texts/texts.js";

const PATH = "v1/vector_stores";
const PAGE = 100;
const POLL_MS = 700;

export class Collections {
  constructor(api) {
    this.api = api;
  }

  /** Returns the newest ones, the newest first. */
  async list() {
    return (await this.api.get(`${PATH}?limit=${PAGE}`)).data.filter(({ status }) => status !== "expired");
  }

  create(name, fileIds) {
    return this.api.post(PATH, { name, file_ids: fileIds });
  }

  remove({ id }) {
    return this.api.delete(pathOf(id));
  }

  /** Iterates over a collection until all of its files are indexed, or have failed. */
  async *progress({ id }) {
    for (;;) {
      const collection = await this.api.get(pathOf(id));
      yield collection;
      if (collection.file_counts.in_progress === 0) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Returns why files were not indexed, by their ids. */
  async faults({ id }) {
    const { data } = await this.api.get(`${pathOf(id)}/files?filter=failed&limit=${PAGE}`);
    return new Map(data.map((file) => [file.id, file.last_error?.message ?? translate("files.cannotBeIndexed")]));
  }
}

function pathOf(id) {
  return `${PATH}/${encodeURIComponent(id)}`;
}
