// The code of a chart of bars and lines becomes its axes and series.

import { linesOf } from "../svg.js";
import { TooLarge, Unreadable } from "../statements.js";

const MAX_VALUES = 200; // of a series
const MAX_SERIES = 12;
const NUMBER = /^[+-]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})$/;
const TITLE = '(?:"([^"]{0,200})"|([^\\s"\\[][^"\\[]{0,200}?))?';
const AXIS = /^([xy])-axis (.*)$/;
const LIST = /^([^[]*)\[(.*)\]$/;
const RANGE = /^(?:(.*) )?(\S+) ?--> ?(\S+)$/;
const SERIES = new RegExp(`^(bar|line)\\s+${TITLE}\\s*\\[(.*)\\]$`);

/** Returns `{ title, xTitle, yTitle, categories, xRange, yRange, series }`; without an axis its part is null. */
export function readChart([first, ...rest]) {
  if (!/^xychart(?:-beta)?(?:\s+(?:horizontal|vertical))?$/.test(first.text)) throw new Unreadable(first.line);
  const chart = { title: "", xTitle: [], yTitle: [], categories: null, xRange: null, yRange: null, series: [] };
  for (const { text, line } of rest) {
    if (!take(text, chart)) throw new Unreadable(line);
    if (chart.series.length > MAX_SERIES || Math.max(chart.categories?.length ?? 0, ...chart.series.map(({ values }) => values.length)) > MAX_VALUES) throw new TooLarge();
  }
  if (chart.series.length === 0) throw new Unreadable(first.line);
  return chart;
}

/** Tells whether the statement could be read. */
function take(text, chart) {
  const title = /^title\s+(.*)$/.exec(text);
  if (title !== null) chart.title = title[1];
  return title !== null || takeAxis(text, chart) || takeSeries(text, chart);
}

function takeAxis(text, chart) {
  const found = AXIS.exec(text);
  if (found === null) return false;
  const [, axis, rest] = found;
  const [list, range] = [LIST.exec(rest), RANGE.exec(rest)];
  if (list !== null) return axis === "x" && takeTitle(list[1], axis, chart, { categories: splitList(list[2]) });
  if (range === null) return !rest.includes("-->") && takeTitle(rest, axis, chart);
  const ends = range.slice(2);
  if (!ends.every((end) => NUMBER.test(end)) || Number(ends[0]) >= Number(ends[1])) return false;
  return takeTitle(range[1] ?? "", axis, chart, { [`${axis}Range`]: ends.map(Number) });
}

function takeTitle(title, axis, chart, parts = {}) {
  Object.assign(chart, parts, { [`${axis}Title`]: title.trim() === "" ? [] : linesOf(title) });
  return true;
}

function takeSeries(text, chart) {
  const found = SERIES.exec(text);
  if (found === null) return false;
  const [, kind, quoted, plain, list] = found;
  const values = splitList(list);
  if (values.length === 0 || !values.every((value) => NUMBER.test(value))) return false;
  chart.series.push({ kind, name: (quoted ?? plain ?? "").trim(), values: values.map(Number) });
  return true;
}

/** Splits at commas that stand outside of quotes. */
function splitList(text) {
  const parts = text.match(/"[^"]*"|[^,"]+/g) ?? [];
  return parts.map((part) => part.trim().replace(/^"(.*)"$/, "$1")).filter((part) => part !== "");
}
