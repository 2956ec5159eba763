// A chart: its title, a legend with the values at the time that is looked at, the drawing, and the same as a table.

import { element, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { stepsTo, timeText, written } from "./formats.js";
import { axes, Frame, label, line, seriesLine, svg } from "./plot.js";

const SPANS_S = [60, 120, 300, 600]; // the shortest is shown that has the whole history
const ROW_EVERY_S = 10; // of the table
const NUM_TIMES = 5;

export class Chart {
  #drawing = svg("svg", { class: "drawing", tabindex: 0, role: "img" });
  #legend = element("ul", { class: "legend" });
  #moment = element("span", { class: "moment" });
  #rows = element("div", { class: "table-scroll", tabindex: "0", role: "group" });
  #entries = [];
  #series = [];
  #frame = null;
  #looked = null; // the index of the entry that is looked at; null: the newest

  constructor(definition) {
    this.definition = definition;
    const [title, note] = [translate(definition.title), translate(definition.note)];
    this.title = title;
    const table = element("details", {}, element("summary", { text: translate("figures.asTable") }), this.#rows);
    table.addEventListener("toggle", () => table.open && this.#fillTable());
    this.#rows.setAttribute("aria-label", translate("figures.chartAsTable", { title }));
    const heading = element("header", {}, element("h2", { text: title }), this.#moment);
    this.element = element("section", { class: "chart" }, heading, this.#legend, this.#drawing, element("p", { class: "note", text: note }), table);
    this.#listen();
    new ResizeObserver(() => this.#draw()).observe(this.#drawing);
  }

  update(history) {
    const before = this.#entries[this.#looked]?.time_s;
    this.#entries = history.entries;
    this.#series = this.definition.series(history);
    if (before !== undefined) this.#lookAt(before);
    this.#draw();
  }

  #listen() {
    this.#drawing.addEventListener("pointermove", ({ clientX }) => {
      if (this.#frame === null) return;
      this.#lookAt(this.#frame.timeAt(clientX - this.#drawing.getBoundingClientRect().left));
      this.#draw();
    });
    for (const type of ["pointerleave", "blur"]) this.#drawing.addEventListener(type, () => this.#lookAway());
    this.#drawing.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 15, PageDown: -15, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") this.#lookAway();
      if (step === undefined || this.#entries.length === 0) return;
      event.preventDefault();
      const last = this.#entries.length - 1;
      this.#looked = Math.min(Math.max((this.#looked ?? last) + step, 0), last);
      this.#draw();
    });
  }

  #lookAway() {
    this.#looked = null;
    this.#draw();
  }

  #lookAt(time_s) {
    const distances = this.#entries.map((entry) => Math.abs(entry.time_s - time_s));
    this.#looked = distances.length > 0 ? distances.indexOf(Math.min(...distances)) : null;
  }

  #draw() {
    const width = this.#drawing.clientWidth;
    const { format } = this.definition;
    this.#writeLegend(format);
    const newest = this.#entries.at(-1);
    if (width === 0 || newest === undefined) return;
    const known = this.#series.flatMap(({ values }) => values).filter((value) => value !== null && value !== undefined);
    const steps = stepsTo(Math.max(0, ...known), format);
    const age_s = newest.time_s - this.#entries[0].time_s;
    const span_s = SPANS_S.find((each) => each >= age_s) ?? SPANS_S.at(-1);
    this.#frame = new Frame(width, { from_s: newest.time_s - span_s, to_s: newest.time_s, top: steps.at(-1) });
    this.#drawing.setAttribute("viewBox", `0 0 ${width} ${this.#frame.height}`);
    this.#drawing.setAttribute("aria-label", `${this.title}: ${this.#spoken(format)}`);
    fill(
      this.#drawing,
      ...axes(this.#frame, steps.map((at) => ({ at, text: written(format, at) })), timesOf(newest.time_s, span_s)),
      ...this.#restarts(),
      ...this.#series.map(({ values }, index) => seriesLine(this.#frame, index + 1, this.#entries, values)),
      ...this.#marks(),
      known.length === 0 ? label("nothing", (this.#frame.left + this.#frame.right) / 2, 90, translate("figures.nothingYet")) : null,
    );
  }

  #restarts() {
    const { from_s, base } = this.#frame;
    const restarted = this.#entries.filter(({ time_s, isAfterRestart }) => isAfterRestart && time_s > from_s);
    return restarted.map(({ time_s }) => line("restart", this.#frame.x(time_s), 10, this.#frame.x(time_s), base));
  }

  #marks() {
    if (this.#looked === null) return [];
    const x = this.#frame.x(this.#entries[this.#looked].time_s);
    const dots = this.#series.map(({ values }, index) => {
      const value = values[this.#looked];
      return value === null || value === undefined ? null : svg("circle", { class: `dot series-${index + 1}`, cx: x, cy: this.#frame.y(value), r: 4 });
    });
    return [line("looked-at", x, 10, x, this.#frame.base), ...dots.filter((dot) => dot !== null)];
  }

  #writeLegend(format) {
    const index = this.#looked ?? this.#entries.length - 1;
    this.#moment.textContent = this.#looked === null ? "" : timeText(this.#entries[index].time_s);
    const items = this.#series.map(({ label: name, values }, number) =>
      element(
        "li",
        {},
        element("span", { class: `swatch series-${number + 1}`, "aria-hidden": "true" }),
        element("span", { class: "name", text: name }),
        element("span", { class: "current", text: written(format, values[index]) }),
      ),
    );
    fill(this.#legend, ...items);
  }

  #spoken(format) {
    const index = this.#looked ?? this.#entries.length - 1;
    return this.#series.map(({ label: name, values }) => `${name} ${written(format, values[index])}`).join(", ");
  }

  #fillTable() {
    const { format } = this.definition;
    const heads = [translate("figures.time"), ...this.#series.map(({ label: name }) => name)];
    const rows = [];
    let next_s = Infinity;
    for (let index = this.#entries.length - 1; index >= 0; index -= 1) {
      const { time_s } = this.#entries[index];
      if (time_s > next_s) continue;
      next_s = time_s - ROW_EVERY_S + 1;
      const cells = this.#series.map(({ values }) => element("td", { text: written(format, values[index]) }));
      rows.push(element("tr", {}, element("th", { scope: "row", text: timeText(time_s) }), ...cells));
    }
    const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", text })));
    const caption = element("caption", { text: translate("figures.tableCaption", { title: this.title }) });
    fill(this.#rows, element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows)));
  }
}

function timesOf(newest_s, span_s) {
  const ages = Array.from({ length: NUM_TIMES }, (_, index) => (span_s * (NUM_TIMES - 1 - index)) / (NUM_TIMES - 1));
  return ages.map((age_s) => ({ at: newest_s - age_s, text: ageText(age_s) }));
}

function ageText(age_s) {
  if (age_s === 0) return translate("figures.now");
  const isMinutes = age_s % 60 === 0 || age_s > 120;
  return isMinutes ? translate("figures.minutesAgo", { minutes: age_s / 60 }) : translate("figures.secondsAgo", { seconds: age_s });
}
