// The texts about a tool that the server runs: what it is called with, and what it answers.

import { formatNumber, translate } from "../texts/texts.js";

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const CLOSERS = ["]", "}"];
const MAX_INDENT = 40;
// Characters that cannot be seen, or that turn the order of others; but those that join letters and emoji
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{e0100}-\u{e01ef}\u115f\u1160\u3164\uffa0]/gu;

/** Returns the title of an item, its arguments, its result, and whether it failed; empty texts where there are none. */
export function hostedParts(item) {
  const error = errorText(item.error);
  const result = error || outputText(item);
  const isFailed = error !== "" || item.status === "failed";
  return { ...headOf(item), result, isFailed };
}

export function decisionText({ approve }) {
  return translate(approve ? "tools.allowed" : "tools.notAllowed");
}

/**
 * Returns JSON on lines of its own, and other texts as they are. Names that stand there twice and long numbers stay as they
 * were sent, and characters that cannot be seen become their codes: a person allows what is written here.
 */
export function formatted(text) {
  if (!isJson(text)) return withCodes(String(text)); // it is still being written, or is as the model wrote it
  const tokens = text.match(TOKENS);
  let depth = 0;
  let written = "";
  for (const [index, token] of tokens.entries()) {
    const isEmptyEnd = ["[", "{"].includes(tokens[index - 1]);
    if (CLOSERS.includes(token)) depth -= 1;
    if ((CLOSERS.includes(token) && !isEmptyEnd) || tokens[index - 1] === "," || (isEmptyEnd && !CLOSERS.includes(token))) written += `\n${"  ".repeat(Math.min(depth, MAX_INDENT))}`;
    if (["[", "{"].includes(token)) depth += 1;
    written += token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token === ":" ? ": " : token;
  }
  return withCodes(written);
}

function isJson(text) {
  try {
    JSON.parse(text);
    return typeof text === "string";
  } catch {
    return false;
  }
}

function withCodes(text) {
  return text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

function headOf(item) {
  const { type, action } = item;
  if (type === "mcp_list_tools") return { title: translate("tools.ofServer", { server: item.server_label, count: (item.tools ?? []).length }), details: (item.tools ?? []).map(({ name }) => name).join("\n") };
  if (type === "mcp_call" || type === "mcp_approval_request") return { title: withCodes(`${item.server_label}.${item.name}`), details: formatted(item.arguments ?? "") };
  if (type === "web_search_call") return { title: webTitle(action ?? {}), details: "" };
  if (type === "code_interpreter_call") return { title: "Python", details: item.code ?? "" };
  if (type === "file_search_call") return { title: translate("tools.searchInFiles"), details: (item.queries ?? []).join("\n") };
  return { title: type.replaceAll("_", " "), details: action === undefined ? "" : JSON.stringify(action, null, 2) };
}

function webTitle({ type, query, url, pattern }) {
  if (type === "open_page") return translate("tools.opens", { url });
  if (type === "find_in_page") return translate("tools.finds", { pattern, url });
  return query ? translate("tools.searchesFor", { query }) : translate("tools.searchesWeb");
}

function outputText({ output, outputs, results }) {
  if (results?.length > 0) return results.map(({ filename, score, text }) => `${filename} (${formatNumber(score, { minimumFractionDigits: 2, maximumFractionDigits: 2 })})\n${text.trim()}`).join("\n\n");
  if (typeof output === "string") return output;
  if (output !== undefined && output !== null) return JSON.stringify(output, null, 2);
  return (outputs ?? []).map(({ logs }) => logs ?? "").join("\n");
}

function errorText(error) {
  if (error === undefined || error === null) return "";
  if (typeof error === "string") return error;
  if (Array.isArray(error.content)) return error.content.map(({ text }) => text ?? "").join("\n");
  return error.message ?? JSON.stringify(error);
}
