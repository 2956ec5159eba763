// The code of classes becomes classes with their members, relations, namespaces and notes. Styles and links are left out.

import { TooLarge, Unreadable } from "../statements.js";

const MAX_CLASSES = 100;
const MAX_MEMBERS = 600;
const MAX_RELATIONS = 300;
const MAX_GROUPS = 40;
const MAX_NOTES = 40;
const IGNORED = /^(?:classDef|style|cssClass|click|link|callback)\b/;
const NAME = "(?:`[^`]{1,100}`|[\\p{L}\\p{N}_]+(?:[.-](?![-.])[\\p{L}\\p{N}_]+)*)(?:~[^{}<>:\"-]{0,100}~)?";
const COUNT = '(?:\\s*"([^"]{0,60})")?';
const RELATION = new RegExp(`^(${NAME})${COUNT}\\s*(<\\|--|<\\|\\.\\.|<--|<\\.\\.|\\*--|\\*\\.\\.|o--|o\\.\\.|\\(\\)--|--|\\.\\.)(\\|>|>|\\*|o(?=[\\s"])|\\(\\))?${COUNT}\\s*(${NAME})\\s*(?::\\s*(.*))?$`, "u");
const CLASS = new RegExp(`^class\\s+(${NAME})\\s*(?:\\["?([^\\]"]{0,200})"?\\])?\\s*(?::::[\\w-]+)?\\s*(?:<<([^<>]{1,60})>>)?\\s*(?:\\{\\s*([^{}]*?)\\s*(\\})?)?$`, "u");
const MEMBER = new RegExp(`^(${NAME})\\s*:\\s*(.+)$`, "u");
const KIND = /^<<([^<>]{1,60})>>$/;
const KIND_OF_CLASS = new RegExp(`^<<([^<>]{1,60})>>\\s*(${NAME})$`, "u");
const NAMESPACE = /^namespace\s+([\p{L}\p{N}_.-]{1,100})\s*\{$/u;
const NOTE = new RegExp(`^note\\s+(?:for\\s+(${NAME})\\s+)?"([^"]{0,500})"$`, "u");
const BLANK_CLASS = new RegExp(`^(${NAME})(?::::[\\w-]+)?$`, "u");
const DIRECTION = /^direction\s+(TD|TB|BT|LR|RL)$/;
const SIGNS = { "<|": "triangle", "|>": "triangle", "*": "diamond", o: "hollow-diamond", "<": ">", ">": ">", "()": "lollipop", "": "" };

/** Returns `{ direction, classes, relations, groups, notes }`; classes and groups are maps by their ids. */
export function readClasses(statements) {
  return new ClassReader().read(statements);
}

class ClassReader {
  #classes = new Map();
  #relations = [];
  #groups = new Map();
  #notes = []; // of no class
  #direction = "TB";
  #open = []; // classes and namespaces
  #numMembers = 0;
  #numNotes = 0;

  read([first, ...rest]) {
    if (!/^classDiagram(?:-v2)?;?$/.test(first.text)) throw new Unreadable(first.line);
    for (const { text, line } of rest) {
      if (!this.#take(text.replace(/;$/, "").trim())) throw new Unreadable(line);
      if (this.#classes.size > MAX_CLASSES || this.#numMembers > MAX_MEMBERS || this.#relations.length > MAX_RELATIONS || this.#groups.size > MAX_GROUPS || this.#numNotes > MAX_NOTES) throw new TooLarge();
    }
    if (this.#classes.size === 0 && this.#notes.length === 0) throw new Unreadable(first.line);
    return { direction: this.#direction, classes: this.#classes, relations: this.#relations, groups: this.#groups, notes: this.#notes };
  }

  /** Tells whether the statement could be read. */
  #take(text) {
    if (text === "") return true;
    if (text === "}") return this.#open.pop() !== undefined;
    const open = this.#open.at(-1);
    if (open?.members !== undefined) return this.#takeMember(open, text);
    if (IGNORED.test(text)) return true;
    const direction = DIRECTION.exec(text);
    if (direction !== null) this.#direction = direction[1];
    return direction !== null || this.#takeClass(text) || this.#takeRelation(text) || this.#takeNamespace(text) || this.#takeNote(text) || this.#takeLine(text);
  }

  #takeClass(text) {
    const found = CLASS.exec(text);
    if (found === null) return false;
    const [, name, title, kind, body, close] = found;
    const each = this.#find(name);
    const namespace = this.#open.at(-1);
    if (namespace !== undefined) each.group = namespace.id;
    if (title !== undefined) each.title = title;
    if (kind !== undefined) each.kinds.push(kind.trim());
    for (const member of (body ?? "").split(/[;\n]/)) if (member.trim() !== "") this.#takeMember(each, member.trim());
    if (body !== undefined && close === undefined) this.#open.push(each);
    return true;
  }

  #takeRelation(text) {
    const found = RELATION.exec(text);
    if (found === null) return false;
    const [, from, startText, line, end = "", endText, to, words] = found;
    const start = line.replace(/--|\.\./, "");
    this.#relations.push({
      from: this.#find(from).id, to: this.#find(to).id, text: words?.trim() ?? "", kind: line.includes("..") ? "dotted" : "plain",
      start: SIGNS[start], end: SIGNS[end], startText, endText,
    });
    return true;
  }

  #takeNamespace(text) {
    const found = NAMESPACE.exec(text);
    if (found === null) return false;
    const parent = this.#open.at(-1)?.id ?? null;
    const id = `${parent ?? ""} ${found[1]}`;
    this.#groups.set(id, { id, title: found[1], parent });
    this.#open.push(this.#groups.get(id));
    return true;
  }

  #takeNote(text) {
    const found = NOTE.exec(text);
    if (found === null) return false;
    this.#numNotes += 1;
    if (found[1] === undefined) this.#notes.push(found[2]);
    else this.#find(found[1]).notes.push({ side: "after", text: found[2] });
    return true;
  }

  /** Takes a member or a kind that stands outside of the class's braces, or a class alone. */
  #takeLine(text) {
    const [kind, member, alone] = [KIND_OF_CLASS.exec(text), MEMBER.exec(text), BLANK_CLASS.exec(text)];
    if (kind !== null) this.#find(kind[2]).kinds.push(kind[1].trim());
    else if (member !== null) this.#takeMember(this.#find(member[1]), member[2]);
    else if (alone !== null) this.#find(alone[1]);
    return kind !== null || member !== null || alone !== null;
  }

  #takeMember(each, text) {
    this.#numMembers += 1;
    const kind = KIND.exec(text);
    if (kind !== null) each.kinds.push(kind[1].trim());
    else each.members.push(text);
    return true;
  }

  #find(written) {
    const [, name, types] = /^`?([^`~]*)`?(~.*)?$/.exec(written);
    const found = this.#classes.get(name) ?? { id: name, title: name, kinds: [], members: [], notes: [], group: null };
    if (types !== undefined && found.title === name) found.title = name + types; // relations may name it with other types
    this.#classes.set(name, found);
    return found;
  }
}
