// The request that would be sent, in words for a shell, for Python and for JavaScript.

import { Api, ROOT } from "../api.js";
import { button, copyFrom, element } from "../dom.js";
import { translate } from "../texts/texts.js";
import { openDialog } from "./dialog.js";

const OPENAI_FIELDS = new Set(["model", "messages", "temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens", "seed", "stop", "tools", "response_format", "logprobs", "top_logprobs", "stream", "stream_options", "input", "instructions", "max_output_tokens", "text", "include", "store"]);
const FORMS = { curl: curlText, Python: pythonText, JavaScript: javaScriptText };
const PYTHON_CHUNKS = [
  "for chunk in stream:",
  "    for choice in chunk.choices:",
  '        print(choice.delta.content or "", end="", flush=True)',
];
const PYTHON_EVENTS = [
  "for event in stream:",
  '    if event.type == "response.output_text.delta":',
  '        print(event.delta, end="", flush=True)',
  '    elif event.type == "response.output_item.done" and event.item.type != "message":',
  "        print(event.item.to_dict())",
];
const JAVASCRIPT_CHUNKS = [
  "for await (const chunk of stream) {",
  "  const delta = chunk.choices[0]?.delta;",
  '  process.stdout.write(delta?.content ?? "");',
];
const JAVASCRIPT_EVENTS = [
  "for await (const event of stream) {",
  '  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);',
  '  else if (event.type === "response.output_item.done" && event.item.type !== "message") console.log(event.item);',
];
const PYTHON_CALLS = [
  "        for call in choice.delta.tool_calls or []:",
  '            name = f"\\n{call.function.name} " if call.function.name else ""',
  '            print(name, call.function.arguments or "", sep="", end="", flush=True)',
];
const JAVASCRIPT_CALLS = [
  "  for (const { function: called } of delta?.tool_calls ?? []) {",
  '    process.stdout.write(called.name ? `\\n${called.name} ` : "");',
  '    process.stdout.write(called.arguments ?? "");',
  "  }",
];

export function showRequest(body) {
  const shown = element("pre", { class: "request", tabindex: 0, "aria-label": translate("dialog.theRequest") });
  let text = "";
  const choose = (name) => {
    text = FORMS[name](body);
    shown.textContent = text.replace(/(data:[\w/+.-]+;base64,[^"'\s]{20})[^"'\s]{60,}/g, "$1…");
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === name));
  };
  const tabs = Object.keys(FORMS).map((name) => button(name, () => choose(name)));
  const copy = button(translate("dialog.copy"), (event) => copyFrom(event.currentTarget, text), { class: "primary" });
  openDialog(translate("dialog.request"), [element("div", { class: "row", role: "group", "aria-label": translate("dialog.programmingLanguage") }, ...tabs, copy), shown], { isWide: true });
  choose("curl");
}

export function curlText(body) {
  const key = Api.key ? ` \\\n  -H "Authorization: Bearer $API_KEY"` : "";
  const text = JSON.stringify(body, null, 2); // as a document: a picture is longer than an argument may be
  return `curl ${new URL(body.input ? "v1/responses" : "v1/chat/completions", ROOT)} \\\n  -H 'Content-Type: application/json'${key} \\\n  -d @- <<'END'\n${text}\nEND`;
}

export function pythonText(body) {
  const [own, extra] = split(body);
  if (Object.keys(extra).length > 0) own.extra_body = extra;
  const fields = Object.entries(own).map(([name, value]) => `    ${name}=${pythonValue(value, 1)},`);
  return [
    "import os",
    "",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${new URL("v1", ROOT)}", api_key=${Api.key ? 'os.environ["API_KEY"]' : '"none"'})`,
    `stream = client.${body.input ? "responses" : "chat.completions"}.create(`,
    ...fields,
    ")",
    ...(body.input ? PYTHON_EVENTS : [...PYTHON_CHUNKS, ...(body.tools ? PYTHON_CALLS : [])]),
  ].filter((line) => Api.key || !["import os"].includes(line)).join("\n").trimStart();
}

export function javaScriptText(body) {
  const key = Api.key ? "process.env.API_KEY" : '"none"';
  return [
    'import OpenAI from "openai";',
    "",
    `const client = new OpenAI({ baseURL: "${new URL("v1", ROOT)}", apiKey: ${key} });`,
    `const stream = await client.${body.input ? "responses" : "chat.completions"}.create(${JSON.stringify(body, null, 2)});`,
    ...(body.input ? JAVASCRIPT_EVENTS : [...JAVASCRIPT_CHUNKS, ...(body.tools ? JAVASCRIPT_CALLS : [])]),
    "}",
  ].join("\n");
}

function split(body) {
  const entries = Object.entries(body);
  const isOwn = ([name]) => OPENAI_FIELDS.has(name);
  return [Object.fromEntries(entries.filter(isOwn)), Object.fromEntries(entries.filter((entry) => !isOwn(entry)))];
}

function pythonValue(value, depth) {
  const [indent, outer] = ["    ".repeat(depth + 1), "    ".repeat(depth)];
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value); // a JSON string is a Python string
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item) => `${indent}${pythonValue(item, depth + 1)},\n`)
    : Object.entries(value).map(([name, item]) => `${indent}${JSON.stringify(name)}: ${pythonValue(item, depth + 1)},\n`);
  const [open, close] = isList ? "[]" : "{}";
  return parts.length === 0 ? open + close : `${open}\n${parts.join("")}${outer}${close}`;
}
