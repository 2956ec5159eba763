// Charts of bars and lines over categories or numbers.

import { formatNumber } from "../../../texts/texts.js";
import { drawing, label, LINE_PX, linesOf, measure, round, shape, titleBlock } from "../svg.js";
import { readChart } from "./xychart_reader.js";

const MARGIN = 14;
const HEIGHT_PX = 300;
const MIN_WIDTH_PX = 420;
const MIN_STEP_PX = 36;
const MAX_LINE = 14; // characters of a category
const GAP = 10;
const NUM_TICKS = 6;
const NUM_TONES = 8;

export function draw(statements, { name, title: outerTitle }) {
  const chart = readChart(statements);
  const numSteps = Math.max(chart.categories?.length ?? 0, ...chart.series.map(({ values }) => values.length));
  const texts = namesOf(chart, numSteps);
  const step = Math.max(MIN_STEP_PX, MIN_WIDTH_PX / numSteps, ...texts.map((lines) => measure(lines).width + GAP));
  const width = step * numSteps;
  const ticks = makeTicks(chart);
  const [low, high] = [ticks[0], ticks.at(-1)];
  const scale = (value) => HEIGHT_PX - ((value - low) / (high - low)) * HEIGHT_PX;
  const tickTexts = ticks.map((tick) => formatNumber(tick, { maximumSignificantDigits: 6 }));
  const left = measure(tickTexts).width + GAP;
  const legend = drawLegend(chart.series, width);
  const top = (chart.yTitle.length > 0 ? chart.yTitle.length * LINE_PX + 12 : 10) + legend.height;
  const below = Math.max(0, ...texts.map((lines) => lines.length)) * LINE_PX + 12;
  const wide = Math.max(left + width, measure(chart.yTitle).width, measure(chart.xTitle).width) + 2 * MARGIN;
  const head = titleBlock(chart.title || outerTitle, wide);
  const height = top + HEIGHT_PX + below + chart.xTitle.length * LINE_PX;
  const nodes = [
    ...ticks.flatMap((tick, index) => [shape("line", { x1: 0, x2: width, y1: scale(tick), y2: scale(tick), class: "grid" }), label([tickTexts[index]], -GAP, scale(tick), { kind: "label muted", anchor: "end" })]),
    ...drawSeries(chart.series, { step, scale, zero: scale(Math.min(Math.max(0, low), high)) }),
    ...texts.map((lines, index) => label(lines, (index + 0.5) * step, HEIGHT_PX + 6 + (lines.length * LINE_PX) / 2)),
    label(chart.xTitle, width / 2, HEIGHT_PX + below + (chart.xTitle.length * LINE_PX) / 2 - 2, { kind: "label muted" }),
    label(chart.yTitle, -left, legend.height - top + (chart.yTitle.length * LINE_PX) / 2, { kind: "label muted", anchor: "start" }),
    shape("g", { transform: `translate(0 ${round(-top)})` }, ...legend.nodes),
  ];
  const x = MARGIN + left + (head.width - wide) / 2;
  return drawing(head.width, head.height + height + 2 * MARGIN, name, ...head.nodes, shape("g", { transform: `translate(${round(x)} ${round(head.height + MARGIN + top)})` }, ...nodes));
}

/** Returns the lines below each step; an axis of numbers is divided among the steps. */
function namesOf({ categories, xRange }, numSteps) {
  if (categories !== null) return categories.map((category) => linesOf(category, MAX_LINE));
  if (xRange === null) return [];
  const [first, last] = xRange;
  const every = Math.ceil(numSteps / 12);
  return Array.from({ length: numSteps }, (_, index) => (index % every === 0 ? [formatNumber(first + ((last - first) * index) / Math.max(numSteps - 1, 1), { maximumSignificantDigits: 4 })] : []));
}

/** Returns round numbers around all values; bars begin at zero. */
function makeTicks({ series, yRange }) {
  const values = series.flatMap((each) => each.values);
  const hasBars = series.some(({ kind }) => kind === "bar");
  const [low, high] = yRange ?? [Math.min(...values, hasBars ? 0 : Infinity), Math.max(...values, hasBars ? 0 : -Infinity)];
  const [least, most] = [Math.min(low, ...values), Math.max(high, ...values)];
  const range = most - least || Math.abs(most) || 1;
  const power = 10 ** Math.floor(Math.log10(range / NUM_TICKS));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => range / each <= NUM_TICKS);
  const [from, to] = [Math.floor(least / step), Math.max(Math.ceil(most / step), Math.floor(least / step) + 1)];
  return Array.from({ length: to - from + 1 }, (_, index) => Number(((from + index) * step).toPrecision(12)));
}

function drawSeries(series, { step, scale, zero }) {
  const bars = series.filter(({ kind }) => kind === "bar");
  const [bodies, lines] = [[], []];
  for (const [index, { kind, values }] of series.entries()) {
    const tone = `tone-${index % NUM_TONES}`;
    if (kind === "bar") {
      const width = (step * 0.7) / bars.length;
      const first = step * 0.15 + bars.indexOf(series[index]) * width;
      for (const [place, value] of values.entries()) {
        const y = scale(value);
        bodies.push(shape("rect", { x: place * step + first, y: Math.min(y, zero), width: Math.max(width - 1, 1), height: Math.abs(y - zero), class: `bar ${tone}` }));
      }
    } else {
      const points = values.map((value, place) => [round((place + 0.5) * step), round(scale(value))]);
      lines.push(shape("polyline", { points: points.map((point) => point.join(" ")).join(" "), class: `curve ${tone}` }));
      for (const [cx, cy] of points) lines.push(shape("circle", { cx, cy, r: 3.5, class: `point ${tone}` }));
    }
  }
  return [...bodies, ...lines];
}

/** Series with names have them above the chart, in rows. */
function drawLegend(series, width) {
  const nodes = [];
  let [x, y] = [0, 0];
  for (const [index, { name }] of series.entries()) {
    if (name === "") continue;
    const [text] = linesOf(name);
    const wide = measure([text]).width + 40;
    if (x > 0 && x + wide > width) [x, y] = [0, y + LINE_PX + 4];
    nodes.push(shape("rect", { x, y: y + 3, width: 12, height: 12, class: `bar tone-${index % NUM_TONES}` }), label([text], x + 18, y + LINE_PX / 2, { anchor: "start" }));
    x += wide;
  }
  return { nodes, height: nodes.length === 0 ? 0 : y + LINE_PX + 10 };
}
