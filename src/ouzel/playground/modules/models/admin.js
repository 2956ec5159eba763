// Loads, unloads and downloads models with the admin key, which is kept in this tab.

import { ApiError, ROOT } from "../api.js";
import { eventsOf } from "../event_stream.js";
import { KeptText } from "../storage/kept_text.js";
import { translate } from "../texts/texts.js";

const kept = new KeptText("sessionStorage", "ouzel.adminKey");

export class Admin {
  get key() {
    return kept.value;
  }

  set key(key) {
    kept.value = key;
  }

  /** Loads a model that the server knows, or, as one that it does not know, the one of this name on its disk. */
  async load(name, isKnown) {
    await this.#send("POST", "v1/models/load", isKnown ? { name } : { name, model: name });
  }

  async unload(name) {
    await this.#send("POST", "v1/models/unload", { name });
  }

  /** Iterates over the progress of a download; aborting the signal stops it. */
  async *pull(name, signal) {
    for await (const event of eventsOf(await this.#send("POST", "v1/models/pull", { model: name }, signal))) {
      if (event.error) throw new ApiError(event.error.code, event.error.message);
      yield event;
    }
  }

  async #send(method, path, body, signal) {
    const headers = { accept: "application/json", authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const response = await fetch(new URL(path, ROOT), { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" }).catch((error) => {
      throw error.name === "AbortError" ? error : new ApiError(0, translate("server.unreachable"));
    });
    if (response.ok) return response;
    const answer = await response.json().catch(() => null);
    throw new ApiError(response.status, answer?.error?.message ?? translate("server.status", { status: String(response.status) }));
  }
}
