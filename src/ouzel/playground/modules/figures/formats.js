// How numbers are written, and the steps of an axis for them.

import { LANGUAGE, formatNumber, translate } from "../texts/texts.js";

const NONE = "–";

/** Each writes a value, and has the least that its axis goes up to; `most` is the most that there can be. */
export const formats = {
  count: { write: (value) => compact(value, 0), least: 4, isWhole: true },
  rate: { write: (value) => translate("figures.perSecond", { rate: compact(value, 1) }), least: 10 },
  share: { write: (value) => translate("figures.percent", { share: fixed(value * 100, value > 0 && value < 0.1 ? 1 : 0) }), least: 1, most: 1 },
  seconds: { write: secondsText, least: 0.01 },
};

export function written(format, value) {
  return value === null || value === undefined ? NONE : format.write(value);
}

/** Returns the steps of an axis from zero to where the highest value has room. */
export function stepsTo(highest, { least, most = Infinity, isWhole = false }) {
  const top = Math.min(Math.max(highest, least), most);
  const power = 10 ** Math.floor(Math.log10(top / 4));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each * 4 >= top && !(isWhole && each % 1 !== 0));
  return [0, 1, 2, 3, 4].map((index) => index * step);
}

export function timeText(time_s) {
  return new Date(time_s * 1000).toLocaleTimeString(LANGUAGE);
}

function compact(value, numDigits) {
  if (value >= 1e6) return `${fixed(value / 1e6, 1)}M`;
  if (value >= 1e4) return `${fixed(value / 1e3, 1)}k`;
  return value >= 100 || Number.isInteger(value) ? fixed(value, 0) : fixed(value, numDigits);
}

function secondsText(value) {
  if (value === 0) return "0";
  if (value < 0.01) return translate("answer.milliseconds", { number: fixed(value * 1000, 1) });
  if (value < 1) return translate("answer.milliseconds", { number: fixed(value * 1000, 0) });
  return value < 100 ? translate("answer.seconds", { number: fixed(value, 1) }) : translate("answer.minutes", { number: fixed(value / 60, 1) });
}

function fixed(value, numDigits) {
  return formatNumber(value, { minimumFractionDigits: numDigits, maximumFractionDigits: numDigits });
}
