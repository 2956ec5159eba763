// Dates and durations in the code of a Gantt chart. Dates are milliseconds in UTC.

const DAY = 86_400_000;
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: DAY, w: 7 * DAY };
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const TOKENS = { YYYY: "(\\d{4})", YY: "(\\d{2})", MMM: "([A-Za-z]{3})", MM: "(\\d{1,2})", M: "(\\d{1,2})", DD: "(\\d{1,2})", D: "(\\d{1,2})", HH: "(\\d{1,2})", H: "(\\d{1,2})", mm: "(\\d{1,2})", ss: "(\\d{1,2})", SSS: "(\\d{3})", X: "(\\d{1,12})", x: "(\\d{1,15})" };
const TOKEN = /YYYY|YY|MMM|MM|M|DD|D|HH|H|mm|ss|SSS|X|x/g;

/** Returns a function that reads dates of a format such as `YYYY-MM-DD`. It returns null for a text of another form. */
export function dateReader(format) {
  const tokens = [];
  const escaped = format.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = new RegExp(`^${escaped.replace(TOKEN, (token) => (tokens.push(token), TOKENS[token]))}$`);
  return (text) => {
    const found = pattern.exec(text);
    if (found === null || tokens.length === 0) return null;
    return makeDate(Object.fromEntries(tokens.map((token, index) => [token, found[index + 1]])));
  };
}

function makeDate(parts) {
  if (parts.x !== undefined) return checked(Number(parts.x));
  if (parts.X !== undefined) return checked(Number(parts.X) * 1000);
  const year = Number(parts.YYYY ?? (parts.YY === undefined ? 1970 : 2000 + Number(parts.YY)));
  const month = parts.MMM === undefined ? Number(parts.MM ?? parts.M ?? 1) - 1 : MONTHS.indexOf(parts.MMM.toLowerCase());
  const day = Number(parts.DD ?? parts.D ?? 1);
  if (month < 0 || month > 11 || day < 1 || day > 31) return null;
  return checked(Date.UTC(year, month, day, Number(parts.HH ?? parts.H ?? 0), Number(parts.mm ?? 0), Number(parts.ss ?? 0), Number(parts.SSS ?? 0)));
}

/** Browsers have dates until the year 275760. */
function checked(date) {
  return Number.isFinite(date) && Math.abs(date) < 8.6e15 ? date : null;
}

/** Returns the date that is a duration such as `3d` or `1d 12h` behind `start`, or null for a text of another form. */
export function addDuration(start, text) {
  if (!/^(?:\d{1,6}(?:\.\d{1,4})?\s*(?:ms|[smhdwMy])\s*){1,4}$/.test(text)) return null;
  let date = start;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|[smhdwMy])/g)) date = addUnits(date, Number(number), unit);
  return checked(date);
}

function addUnits(start, number, unit) {
  if (unit !== "M" && unit !== "y") return start + number * UNITS[unit];
  const date = new Date(start);
  return date.setUTCMonth(date.getUTCMonth() + number * (unit === "y" ? 12 : 1));
}

const FIELDS = {
  Y: (date) => date.getUTCFullYear(),
  y: (date) => two(date.getUTCFullYear() % 100),
  m: (date) => two(date.getUTCMonth() + 1),
  d: (date) => two(date.getUTCDate()),
  e: (date) => date.getUTCDate(),
  H: (date) => two(date.getUTCHours()),
  M: (date) => two(date.getUTCMinutes()),
  S: (date) => two(date.getUTCSeconds()),
  q: (date) => Math.floor(date.getUTCMonth() / 3) + 1,
};
const NAMES = { b: { month: "short" }, B: { month: "long" }, a: { weekday: "short" }, A: { weekday: "long" }, p: { hour: "numeric", hour12: true } };

/** Returns the text of a date in a format such as `%d %b`, with names in `language`. */
export function writeDate(time, format, language) {
  const date = new Date(time);
  return format.slice(0, 40).replace(/%([-_0]?)([A-Za-z%])/g, (written, _, field) => {
    if (Object.hasOwn(FIELDS, field)) return String(FIELDS[field](date));
    if (Object.hasOwn(NAMES, field)) return new Intl.DateTimeFormat(language, { ...NAMES[field], timeZone: "UTC" }).format(date);
    if (field === "W" || field === "U" || field === "V") return two(Math.floor(((date - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY + 7) / 7));
    return field === "%" ? "%" : written;
  });
}

function two(number) {
  return String(number).padStart(2, "0");
}

const STEPS = [["minute", 1], ["minute", 5], ["minute", 15], ["minute", 30], ["hour", 1], ["hour", 3], ["hour", 6], ["hour", 12], ["day", 1], ["day", 2], ["week", 1], ["week", 2], ["month", 1], ["month", 3], ["month", 6], ["year", 1], ["year", 2], ["year", 5], ["year", 10], ["year", 50], ["year", 100], ["year", 1000], ["year", 10_000]];
const LENGTHS = { millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000, day: DAY, week: 7 * DAY, month: 30 * DAY, year: 365 * DAY };

/** Returns `{ unit, ticks }`: dates at whole units from `start` to `end`, at most `max`; `wish` is one such as `1week`, or "". */
export function makeTicks(start, end, { max, wish }) {
  const wished = /^([1-9]\d{0,3})\s*(millisecond|second|minute|hour|day|week|month)$/.exec(wish);
  const steps = wished === null ? STEPS : [[wished[2], Number(wished[1])], ...STEPS];
  const [unit, number] = steps.find(([name, count]) => (end - start) / (LENGTHS[name] * count) <= max) ?? STEPS.at(-1);
  const ticks = [];
  for (let tick = firstTick(start, unit, number); tick !== null && tick <= end && ticks.length <= max + 1; tick = nextTick(tick, unit, number)) if (tick >= start) ticks.push(tick);
  return { unit, ticks };
}

function firstTick(start, unit, number) {
  const date = new Date(start);
  if (unit === "year") return Date.UTC(Math.floor(date.getUTCFullYear() / number) * number, 0, 1);
  if (unit === "month") return Date.UTC(date.getUTCFullYear(), Math.floor(date.getUTCMonth() / number) * number, 1);
  if (unit === "week") return Math.floor(start / DAY) * DAY - ((date.getUTCDay() + 6) % 7) * DAY; // a Monday
  const length = LENGTHS[unit] * number;
  return Math.floor(start / length) * length;
}

function nextTick(tick, unit, number) {
  if (unit === "month" || unit === "year") return addDuration(tick, `${number}${unit === "year" ? "y" : "M"}`);
  return tick + LENGTHS[unit] * number;
}
