// The names and sizes of files, for people. A name may be anything: it is cut, and signs that turn the order of letters are taken out.

import { formatNumber, translate } from "../texts/texts.js";

const MAX_BYTES = 200; // of a name in the sandbox of a model's code
const MAX_SHOWN = 40; // characters
const NUM_LAST = 12; // characters that stay of the end, which says what kind of file it is
const UNITS = ["files.kilobytes", "files.megabytes", "files.gigabytes"];
// Line ends and other control characters, and invisible ones such as those that write backwards.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Returns the name under which a file is uploaded: the last part of a path, in characters that can be seen. */
export function safeName(name) {
  const last = name.split(/[\\/]/).at(-1);
  const seen = last.toWellFormed().replace(INVISIBLE, "").replace(/\p{Zs}/gu, " ").trim();
  return ["", ".", ".."].includes(seen) ? "file" : cutName(seen, (text) => new TextEncoder().encode(text).length <= MAX_BYTES);
}

/** Returns a name of which the middle is left out where it is long. */
export function shortName(name) {
  const characters = [...name.toWellFormed().replace(INVISIBLE, "�")];
  if (characters.length <= MAX_SHOWN) return characters.join("");
  return `${characters.slice(0, MAX_SHOWN - NUM_LAST).join("")}…${characters.slice(-NUM_LAST).join("")}`;
}

/** Returns the last part of a name, in capitals, for a sign; empty where there is none. */
export function endingOf(name) {
  return /\.([\p{L}\p{N}]{1,5})$/u.exec(name)?.[1].toUpperCase() ?? "";
}

export function sizeText(numBytes) {
  if (numBytes === null) return "";
  if (numBytes < 1000) return translate("files.bytes", { count: numBytes });
  let size = numBytes;
  let unit = -1;
  for (; size >= 999.5 && unit < UNITS.length - 1; unit += 1) size /= 1000;
  const digits = size < 10 ? 1 : 0;
  const number = formatNumber(size, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return translate(UNITS[unit], { number });
}

/** Returns the number of tokens of a file in words; empty where it is not known. */
export function tokensText({ numTokens, isEstimate }) {
  if (numTokens === null || numTokens === undefined) return "";
  return isEstimate ? translate("files.aboutTokens", { count: rounded(numTokens) }) : translate("files.tokens", { count: numTokens });
}

/** Returns an estimate with two digits that count. */
export function rounded(number) {
  return Number(number.toPrecision(2));
}

/** Cuts the middle of a name until it fits. */
function cutName(name, fits) {
  const characters = [...name];
  const end = characters.slice(-NUM_LAST);
  let rest = characters.slice(0, -NUM_LAST).slice(0, MAX_BYTES);
  while (!fits([...rest, ...end].join(""))) rest = rest.slice(0, -1);
  return [...rest, ...end].join("");
}
