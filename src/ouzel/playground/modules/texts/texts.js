// The texts of the page in the language that the server chose for it: `lang` of the document names the file.
// A text may hold values, as {name}. A text that depends on a number has a form for each plural category of the language.

/** The language of the page, as `en`. */
export const LANGUAGE = document.documentElement.lang;

const TEXTS = await load();
const plurals = new Intl.PluralRules(LANGUAGE);
const numbers = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 20 });
const VALUE = /\{(\w+)\}/;

/** Returns the text of a key. `values.count` chooses the plural form. Numbers are written as the language writes them. */
export function translate(key, values = {}) {
  return translateParts(key, values).join("");
}

/** Returns the pieces of a text, for values that are nodes. */
export function translateParts(key, values = {}) {
  const pieces = formOf(key, values).split(VALUE); // every second piece is the name of a value
  return pieces.map((piece, index) => (index % 2 === 0 ? piece : shown(values[piece]))).filter((piece) => piece !== "");
}

/** Returns a number as the language writes it. `options` are those of Intl.NumberFormat. */
export function formatNumber(number, options = null) {
  return (options === null ? numbers : new Intl.NumberFormat(LANGUAGE, options)).format(number);
}

function formOf(key, { count }) {
  const entry = TEXTS[key];
  if (entry === undefined) throw new Error(`There is no text ${key}.`);
  return typeof entry === "string" ? entry : entry[plurals.select(count)];
}

function shown(value) {
  return typeof value === "number" ? formatNumber(value) : value;
}

async function load() {
  try {
    const response = await fetch(new URL(`../../texts/${LANGUAGE}.json`, import.meta.url));
    if (!response.ok) throw new Error(`status ${response.status}`);
    return await response.json();
  } catch (error) {
    showMissing(error);
    throw error;
  }
}

/** Without its texts the page can say only this, and in no other language. */
function showMissing(error) {
  const failure = document.getElementById("failure");
  if (failure === null) return;
  failure.textContent = `The texts of this page could not be loaded (${error.message}). Load the page again.`;
  failure.hidden = false;
}
