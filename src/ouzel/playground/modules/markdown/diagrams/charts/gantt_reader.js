// The code of a Gantt chart becomes sections with tasks, each with a start and an end.

import { TooLarge, Unreadable } from "../statements.js";
import { addDuration, dateReader } from "./dates.js";

const MAX_TASKS = 150;
const MAX_SECTIONS = 40;
const MAX_COUNTED_DAYS = 100_000; // of all tasks, where some days are excluded
const MAX_FORMAT = 60; // characters
const DAY = 86_400_000;
const AFTER = /^after (.+)$/;
const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const TAGS = new Set(["active", "done", "crit", "milestone", "vert"]);
const SETTING = /^(title|dateFormat|axisFormat|tickInterval|excludes|includes|todayMarker|weekday|weekend)\b\s*(.*)$/;
const WITH_COLONS = new Set(["title", "dateFormat", "axisFormat", "todayMarker"]); // other words may begin the name of a task
const IGNORED = /^(?:click|inclusiveEndDates|topAxis)\b/;

/** Returns `{ title, axisFormat, tickInterval, sections }`; a section has `name` and `tasks` with `name`, `tags`, `start` and `end`. */
export function readGantt(statements) {
  return new GanttReader().read(statements);
}

class GanttReader {
  #settings = { title: "", dateFormat: "YYYY-MM-DD", axisFormat: "", tickInterval: "", excludes: "", includes: "", todayMarker: "", weekday: "", weekend: "saturday" };
  #sections = [];
  #tasks = []; // with the texts of their dates, until all are read
  #areEndsWhole = false;
  #isExcluded = null;
  #numDays = 0; // counted in search of excluded ones

  read([first, ...rest]) {
    if (!/^gantt;?$/.test(first.text)) throw new Unreadable(first.line);
    for (const { text, line } of rest) {
      this.#take(text.replace(/;$/, "").trim(), line);
      if (this.#tasks.length > MAX_TASKS || this.#sections.length > MAX_SECTIONS) throw new TooLarge();
    }
    if (this.#tasks.length === 0) throw new Unreadable(first.line);
    this.#findDates();
    return { ...this.#settings, sections: this.#sections.filter(({ tasks }) => tasks.length > 0) };
  }

  #take(text, line) {
    const setting = SETTING.exec(text);
    const section = /^section\s+(.*)$/.exec(text);
    const task = /^([^:]{1,200}):(.*)$/.exec(text);
    if (section !== null) this.#sections.push({ name: section[1].replace(/:$/, ""), tasks: [] });
    else if (setting !== null && (task === null || WITH_COLONS.has(setting[1]))) this.#settings[setting[1]] = setting[2].trim();
    else if (IGNORED.test(text)) this.#areEndsWhole ||= text.startsWith("inclusive");
    else if (task !== null) this.#addTask(task[1].trim(), task[2], line);
    else throw new Unreadable(line);
  }

  #addTask(name, written, line) {
    const parts = written.split(",").map((part) => part.trim()).filter((part) => part !== "");
    const tags = [];
    while (parts.length > 0 && TAGS.has(parts[0])) tags.push(parts.shift());
    if (parts.length > 3) throw new Unreadable(line);
    const task = { name, tags, parts, line };
    this.#tasks.push(task);
    if (this.#sections.length === 0) this.#sections.push({ name: "", tasks: [] });
    this.#sections.at(-1).tasks.push(task);
  }

  /** A task may begin after one that stands below it, so tasks are gone through until no date is added. */
  #findDates() {
    const read = this.#makeReader();
    for (const task of this.#tasks) Object.assign(task, readParts(task, read));
    const byId = new Map(this.#tasks.map((task) => [task.id, task]));
    for (let hasFound = true; hasFound; ) {
      hasFound = false;
      for (const [index, task] of this.#tasks.entries()) {
        if (task.end !== undefined) continue;
        task.start ??= this.#findStart(task, index, read, byId);
        if (task.start !== undefined) task.end = this.#findEnd(task, read, byId);
        hasFound ||= task.end !== undefined;
      }
    }
    const lost = this.#tasks.find(({ end }) => end === undefined);
    if (lost !== undefined) throw new Unreadable(lost.line);
  }

  /** Dates may also have the usual form, whatever the chart's own format is. */
  #makeReader() {
    const [own, usual] = [dateReader(this.#settings.dateFormat.slice(0, MAX_FORMAT)), dateReader("YYYY-MM-DD")];
    return (text) => own(text) ?? usual(text);
  }

  /** Returns undefined while another task has no date yet. The first task begins today if its code has no date. */
  #findStart({ startText, line }, index, read, byId) {
    if (startText === "") return index === 0 ? Math.floor(Date.now() / DAY) * DAY : this.#tasks[index - 1].end;
    const after = AFTER.exec(startText);
    if (after === null) return read(startText) ?? fail(line);
    const ends = after[1].split(" ").map((id) => byId.get(id)?.end);
    return ends.includes(undefined) ? undefined : Math.max(...ends);
  }

  #findEnd({ start, endText, tags, line }, read, byId) {
    const until = /^until (.+)$/.exec(endText);
    if (until !== null) {
      const starts = until[1].split(" ").map((id) => byId.get(id)?.start);
      return starts.includes(undefined) ? undefined : Math.max(start, Math.min(...starts));
    }
    if (endText === "") return tags.includes("milestone") ? start : start + DAY;
    const date = read(endText);
    if (date !== null) return Math.max(start, this.#areEndsWhole ? date + DAY : date);
    const end = addDuration(start, endText) ?? fail(line);
    return this.#withoutExcluded(start, end);
  }

  /** A duration counts no excluded days. */
  #withoutExcluded(start, end) {
    if (this.#settings.excludes === "") return end;
    this.#isExcluded ??= makeExclusion(this.#settings);
    let last = end;
    for (let day = start; day < last; day += DAY) {
      if (this.#isExcluded(Math.floor(day / DAY))) last += DAY;
      this.#numDays += 1;
      if (this.#numDays > MAX_COUNTED_DAYS) throw new TooLarge();
    }
    return last;
  }
}

/** Returns a function that tells whether a day is excluded. Days are counted from 1970, a Thursday. */
function makeExclusion({ excludes, weekend }) {
  const words = excludes.toLowerCase().split(/[ ,]+/);
  const weekdays = new Set(words.filter((word) => DAYS.includes(word)).map((word) => DAYS.indexOf(word)));
  if (words.includes("weekends")) for (const name of weekend === "friday" ? ["friday", "saturday"] : ["saturday", "sunday"]) weekdays.add(DAYS.indexOf(name));
  const read = dateReader("YYYY-MM-DD");
  const dates = new Set(words.map((word) => read(word)).filter((date) => date !== null).map((date) => date / DAY));
  return (day) => weekdays.has((((day + 4) % 7) + 7) % 7) || dates.has(day);
}

/** Returns `{ id, startText, endText }` of the parts behind a task's tags: an id, a start and an end, of which some may be missing. */
function readParts({ tags, parts: written }, read) {
  const parts = [...written];
  const isStart = (text) => AFTER.test(text) || read(text) !== null;
  const hasId = parts.length === 3 || (parts.length === 2 && !isStart(parts[0]));
  const id = hasId ? parts.shift() : null;
  const isPoint = parts.length === 1 && (AFTER.test(parts[0]) || (tags.includes("milestone") && isStart(parts[0])));
  const [startText, endText] = isPoint ? [parts[0], ""] : [parts.length === 2 ? parts[0] : "", parts.at(-1) ?? ""];
  return { id, startText, endText };
}

function fail(line) {
  throw new Unreadable(line);
}
