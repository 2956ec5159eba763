// The code of a chart of bars and lines becomes its axes and series.

import { linesOf } from "../svg.js";
import { TooLarge, Unreadable } from "../statements.js";

const MAX_VALUES = 200; // of a series
const MAX_SERIES = 12;
const NUMBER = /^[+-]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})$/;
const TITLE = '(?:"([^"]{0,200})"|([^\\s"\\[][^"\\[]{0,200}?))?';
const AXIS = new RegExp(`^([xy])-axis\\s+${TITLE}\\s*(?:\\[(.*)\\]|([+-]?[\\d.]+)\\s*-->\\s*([+-]?[\\d.]+))?$`);
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
  const [, axis, quoted, plain, list, low, high] = found;
  const title = quoted ?? plain ?? "";
  chart[`${axis}Title`] = title.trim() === "" ? [] : linesOf(title);
  if (list !== undefined && axis === "y") return false;
  if (list !== undefined) chart.categories = splitList(list);
  if (low === undefined) return true;
  if (!NUMBER.test(low) || !NUMBER.test(high) || Number(low) >= Number(high)) return false;
  chart[`${axis}Range`] = [Number(low), Number(high)];
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
