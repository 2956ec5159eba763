// The languages that are coloured. A language is a row of rules, of which the first counts that fits where a token begins;
// a rule with an `end` is a span that may go on over lines. Every pattern takes a time that grows with what it reads, and no
// faster: no repetition stands in another one whose turns could be cut in two ways.

import { WORDS } from "./words.js";

const NUMBER = { kind: "number", begin: /\b0[xX][\da-fA-F_]+\b|\b0[bBoO][0-7_]+\b|\b\d[\d_]*(?:\.[\d_]+)?(?:[eE][+-]?\d+)?\w*/ };
const DOUBLE = { kind: "string", begin: /"(?:[^"\\]|\\.)*"?/ };
const SINGLE = { kind: "string", begin: /'(?:[^'\\]|\\.)*'?/ };
const CALL = { kind: "function", begin: /\b[A-Za-z_]\w*(?=\()/ };
const WORD = { kind: "word", begin: /[A-Za-z_$@][\w$]*/ };
const HASH = { kind: "comment", begin: /#.*/ };
const SLASHES = { kind: "comment", begin: /\/\/.*/ };
const STARS = { kind: "comment", begin: /\/\*/, end: /\*\//g };
const TEMPLATE = { kind: "string", begin: /`/, end: /(?:[^`\\]|\\.)*?`|\\$/g };
const TAG = [
  { kind: "comment", begin: /<!--/, end: /-->/g },
  { kind: "keyword", begin: /<!?\/?[A-Za-z][\w:.-]*|\/?>/ },
  { kind: "string", begin: /=\s?"[^"]*"?|=\s?'[^']*'?/ },
  { kind: "attribute", begin: /[\w:@.-]+(?==)/ },
  { kind: "number", begin: /&[#\w]{1,32};/ },
];
const C_RULES = [SLASHES, STARS, { kind: "attribute", begin: /^\s*#\s*\w+/ }, DOUBLE, { kind: "string", begin: /'(?:[^'\\]|\\.[^']{0,8})'/ }, NUMBER];

const RULES = {
  python: [
    HASH,
    { kind: "string", begin: /\b[rRbBfFuU]{0,2}"""|"""/, end: /(?:[^"\\]|\\.|"(?!""))*"""/g },
    { kind: "string", begin: /\b[rRbBfFuU]{0,2}'''|'''/, end: /(?:[^'\\]|\\.|'(?!''))*'''/g },
    { kind: "attribute", begin: /^\s*@[\w.]+/ },
    { kind: "string", begin: /\b[rRbBfFuU]{1,2}"(?:[^"\\]|\\.)*"?|\b[rRbBfFuU]{1,2}'(?:[^'\\]|\\.)*'?/ },
    DOUBLE, SINGLE, NUMBER,
  ],
  javascript: [SLASHES, STARS, DOUBLE, SINGLE, TEMPLATE, NUMBER],
  json: [{ kind: "attribute", begin: /"(?:[^"\\]|\\.)*"(?=\s?:)/ }, DOUBLE, { kind: "number", begin: /-?\b\d[\d.eE+-]*/ }, SLASHES, STARS],
  shell: [
    { kind: "comment", begin: /(?<=^|\s)#.*/ },
    DOUBLE,
    { kind: "string", begin: /'[^']*'?/ },
    { kind: "type", begin: /\$\{[^}]*\}?|\$[\w@#?*!$-]/ },
    { kind: "attribute", begin: /(?<=\s)--?[A-Za-z][\w-]*/ },
  ],
  c: C_RULES,
  go: [SLASHES, STARS, DOUBLE, SINGLE, { kind: "string", begin: /`/, end: /`/g }, NUMBER],
  rust: [SLASHES, STARS, { kind: "attribute", begin: /#!?\[[^\]]*\]?/ }, ...C_RULES.slice(3), { kind: "type", begin: /'[a-z_]\w*/ }],
  html: TAG,
  css: [
    STARS, DOUBLE, SINGLE,
    { kind: "keyword", begin: /@[\w-]+|!important/ },
    { kind: "number", begin: /#[\da-fA-F]{3,8}\b|-?\b\d[\d.]*(?:[a-z]+|%)?/ },
    { kind: "attribute", begin: /--[\w-]+|(?<![a-z-])[a-z-]+(?=\s?:(?:\s|$))/ },
    { kind: "function", begin: /(?<![\w-])[\w-]+(?=\()/ },
    { kind: "type", begin: /[.#][A-Za-z_][\w-]*/ },
  ],
  sql: [{ kind: "comment", begin: /--.*/ }, STARS, { kind: "string", begin: /'(?:[^']|'')*'?/ }, DOUBLE, NUMBER],
  yaml: [
    { kind: "comment", begin: /(?<=^|\s)#.*/ },
    { kind: "attribute", begin: /(?<=^\s*(?:- +)?)(?:"[^"]*"|[\w.\/-]+)(?=:(?:\s|$))/ },
    DOUBLE, { kind: "string", begin: /(?<=[\s[{,])'[^']*'?/ },
    { kind: "type", begin: /[&*][A-Za-z]\w*|^---$/ },
    { kind: "number", begin: /(?<=[\s[{,])-?\d[\d.]*(?=[\s\]},]|$)/ },
  ],
  toml: [HASH, { kind: "type", begin: /^\s*\[.*\]/ }, { kind: "attribute", begin: /^\s*[\w."-]+(?=\s?=)/ }, DOUBLE, SINGLE, NUMBER],
  diff: [
    { kind: "inserted", begin: /^\+.*/ },
    { kind: "removed", begin: /^-.*/ },
    { kind: "attribute", begin: /^@@.*/ },
  ],
};
const HAS_CALLS = new Set(["python", "javascript", "c", "go", "rust", "sql"]);

const ALIASES = {
  py: "python", python3: "python", pycon: "python", js: "javascript", jsx: "javascript", mjs: "javascript",
  ts: "javascript", tsx: "javascript", typescript: "javascript", json5: "json", jsonc: "json", jsonl: "json",
  sh: "shell", bash: "shell", zsh: "shell", console: "shell", "shell-session": "shell", dockerfile: "shell",
  makefile: "shell", "c++": "c", cpp: "c", cc: "c", h: "c", hpp: "c", java: "c", "c#": "c", cs: "c", csharp: "c",
  kotlin: "c", kt: "c", swift: "c", php: "c", scala: "c", dart: "c", "objective-c": "c", golang: "go", rs: "rust",
  htm: "html", xml: "html", svg: "html", vue: "html", scss: "css", less: "css", postgresql: "sql", mysql: "sql",
  sqlite: "sql", yml: "yaml", ini: "toml", patch: "diff",
};

const made = new Map(); // by name

/** Returns how a language is read; null where it is not known. */
export function languageOf(name) {
  const lower = name.toLowerCase();
  const known = Object.hasOwn(ALIASES, lower) ? ALIASES[lower] : lower;
  if (!Object.hasOwn(RULES, known)) return null;
  if (!made.has(known)) made.set(known, make(known));
  return made.get(known);
}

function make(name) {
  const rules = [...RULES[name]];
  const keywords = (WORDS[name] ?? "").split(" ");
  const words = new Map(keywords.map((word) => [word, "keyword"]));
  for (const word of (WORDS.constants[name] ?? "").split(" ")) words.set(word, "number");
  rules.push({ kind: "word", begin: keywordPattern(words) });
  if (HAS_CALLS.has(name)) rules.push(CALL, WORD);
  const pattern = new RegExp(rules.map(({ begin }) => `(${begin.source})`).join("|"), name === "sql" ? "gi" : "g");
  return { pattern, rules, words, ignoresCase: name === "sql" };
}

function keywordPattern(words) {
  const known = [...words.keys()].filter((word) => word !== "");
  return known.length === 0 ? /(?!)/ : new RegExp(`\\b(?:${known.join("|")})\\b`);
}
