// The code of states becomes states, transitions and notes. Each state stands in a region: the diagram's own one, or one of a
// state with states inside. Styles, classes and links are left out.

import { TooLarge, Unreadable } from "../statements.js";

const MAX_STATES = 150;
const MAX_TRANSITIONS = 300;
const MAX_DEPTH = 6;
const MAX_NOTES = 40;
const IGNORED = /^(?:classDef|class|style|click|hide\s+empty|scale)\b/;
const ID = '[^\\s:;{}"<>\\[\\]-]+(?:-(?![->])[^\\s:;{}"<>\\[\\]-]+)*';
const END = `(\\[\\*\\]|${ID})(?::::[\\w-]+)?`;
const TRANSITION = new RegExp(`^${END}\\s*--+>\\s*${END}\\s*(?::\\s*(.*))?$`, "u");
const STATE = new RegExp(`^state\\s+(?:"([^"]{0,300})"\\s+as\\s+)?(?:"([^"]{1,100})"|(${ID}))(?::::[\\w-]+)?\\s*(?:<<(\\w+)>>|\\[\\[(\\w+)\\]\\])?\\s*(?::\\s*([^{]*))?(\\{)?\\s*(\\})?$`, "u");
const DESCRIPTION = new RegExp(`^(${ID})(?::::[\\w-]+)?\\s*(?::\\s*(.*))?$`, "u");
const NOTE = new RegExp(`^note\\s+(left|right)\\s+of\\s+(${ID})\\s*(?::\\s*(.*))?$`, "iu");
const DIRECTION = /^direction\s+(TD|TB|BT|LR|RL)$/;
const KINDS = new Set(["choice", "fork", "join"]);

/**
 * Returns `{ root, transitions }`. A region has `owner` (a state or null), `direction`, `states`, and room for `edges` and `gates`; a state has `id`, `kind`,
 * `texts`, `notes`, `region` and `regions`.
 */
export function readStates(statements) {
  return new StateReader().read(statements);
}

class StateReader {
  #states = new Map();
  #transitions = [];
  #root = makeRegion(null);
  #region = this.#root;
  #note = null; // that goes on over several lines
  #numNotes = 0;

  read([first, ...rest]) {
    if (!/^stateDiagram(?:-v2)?;?$/.test(first.text)) throw new Unreadable(first.line);
    for (const { text, line } of rest) {
      if (this.#note !== null) this.#goOnWithNote(text);
      else if (!this.#take(text.replace(/;$/, "").trim(), line)) throw new Unreadable(line);
      if (this.#states.size > MAX_STATES || this.#transitions.length > MAX_TRANSITIONS || this.#numNotes > MAX_NOTES) throw new TooLarge();
    }
    if (this.#states.size === 0) throw new Unreadable(first.line);
    return { root: this.#root, transitions: this.#transitions };
  }

  /** Tells whether the statement could be read. */
  #take(text, line) {
    if (text === "" || IGNORED.test(text)) return true;
    if (text === "}") return this.#close();
    if (/^--+$/.test(text)) return this.#divide();
    const direction = DIRECTION.exec(text);
    if (direction !== null) this.#region.direction = direction[1];
    return direction !== null || this.#takeTransition(text, line) || this.#takeNote(text) || this.#takeState(text) || this.#takeDescription(text);
  }

  #takeTransition(text, line) {
    const found = TRANSITION.exec(text);
    if (found === null) return false;
    const [, from, to, words] = found;
    const ends = { from: from === "[*]" ? this.#point("start") : this.#find(from), to: to === "[*]" ? this.#point("end") : this.#find(to) };
    this.#transitions.push({ ...ends, text: words?.trim() ?? "", line });
    return true;
  }

  #takeState(text) {
    const found = STATE.exec(text);
    if (found === null) return false;
    const [, title, quoted, id, mark, bracketed, words, open, close] = found;
    const state = this.#find(id ?? quoted);
    const kind = mark ?? bracketed;
    if (kind !== undefined && !KINDS.has(kind)) return false;
    if (kind !== undefined) state.kind = kind;
    for (const each of [title, words]) if (each !== undefined && each.trim() !== "") state.texts.push(each.trim());
    if (open !== undefined && close === undefined) this.#open(state);
    return open !== undefined || close === undefined;
  }

  #takeDescription(text) {
    const found = DESCRIPTION.exec(text);
    if (found === null) return false;
    const state = this.#find(found[1]);
    if (found[2]) state.texts.push(found[2].trim());
    return true;
  }

  #takeNote(text) {
    const found = NOTE.exec(text);
    if (found === null) return false;
    const [, side, id, words] = found;
    const note = { side: side.toLowerCase() === "left" ? "before" : "after", text: words?.trim() ?? "" };
    this.#find(id).notes.push(note);
    this.#numNotes += 1;
    if (words === undefined) this.#note = note;
    return true;
  }

  #goOnWithNote(text) {
    if (/^end\s*note$/i.test(text)) this.#note = null;
    else this.#note.text = this.#note.text === "" ? text : `${this.#note.text}\n${text}`;
  }

  #open(state) {
    const region = makeRegion(state);
    state.regions.push(region);
    this.#region = region;
    let depth = 0;
    for (let owner = state; owner !== null; owner = owner.region.owner) depth += 1;
    if (depth > MAX_DEPTH) throw new TooLarge();
  }

  #close() {
    if (this.#region.owner === null) return false;
    this.#region = this.#region.owner.region;
    return true;
  }

  #divide() {
    if (this.#region.owner === null) return false;
    const region = makeRegion(this.#region.owner);
    region.direction = this.#region.direction;
    region.owner.regions.push(region);
    this.#region = region;
    return true;
  }

  /** Returns the state, which stands in the region where it is named first. */
  #find(id) {
    return this.#states.get(id) ?? this.#add({ id, kind: "state" });
  }

  /** Returns the start or the end of this region; a blank in its id keeps it apart from states. */
  #point(kind) {
    this.#region[kind] ??= this.#add({ id: `${kind} ${this.#states.size}`, kind });
    return this.#region[kind];
  }

  #add(parts) {
    const state = { ...parts, texts: [], notes: [], region: this.#region, regions: [] };
    this.#states.set(state.id, state);
    this.#region.states.push(state);
    return state;
  }
}

function makeRegion(owner) {
  return { owner, direction: owner?.region.direction ?? "TB", states: [], start: null, end: null, edges: [], gates: [] };
}
