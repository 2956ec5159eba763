// How numbers are written, and the steps of an axis for them.

const NONE = "–";

/** Each writes a value, and has the least that its axis goes up to; `most` is the most that there can be. */
export const formats = {
  count: { write: (value) => compact(value, 0), least: 4, isWhole: true },
  rate: { write: (value) => `${compact(value, 1)}/s`, least: 10 },
  share: { write: (value) => `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)} %`, least: 1, most: 1 },
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
  return new Date(time_s * 1000).toLocaleTimeString();
}

function compact(value, numDigits) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(numDigits);
}

function secondsText(value) {
  if (value === 0) return "0";
  if (value < 0.01) return `${(value * 1000).toFixed(1)} ms`;
  if (value < 1) return `${(value * 1000).toFixed(0)} ms`;
  return value < 100 ? `${value.toFixed(1)} s` : `${(value / 60).toFixed(1)} min`;
}
