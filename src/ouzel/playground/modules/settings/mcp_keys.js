// What MCP servers of one's own ask for: an authorization. It is kept in this tab, and never with a conversation.

import { KeptText } from "../storage/kept_text.js";

const kept = new KeptText("sessionStorage", "ouzel.mcpKeys");

/** Returns the authorization for a server; empty where there is none. */
export function mcpKey(url) {
  return stored()[url] ?? "";
}

export function keepMcpKey(url, key) {
  const keys = { ...stored(), [url]: key };
  kept.value = JSON.stringify(Object.fromEntries(Object.entries(keys).filter(([, each]) => each !== "")));
}

function stored() {
  try {
    return Object.assign(Object.create(null), JSON.parse(kept.value || "{}"));
  } catch {
    return {};
  }
}
