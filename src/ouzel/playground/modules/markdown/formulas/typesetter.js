// TeX becomes MathML by Temml, which is loaded with the first formula. Its licence and version stand beside it.
//
// A formula is text of a model. So its length is bounded, and how often a macro is replaced; Temml trusts no TeX that asks
// for an address, a class, an id or a style; and mathml.js takes of the outcome only what it knows.

import { addStyles } from "../../lazy_styles.js";
import { translate } from "../../texts/texts.js";
import { buildMathml, TooLarge } from "./mathml.js";

const MAX_LENGTH = 5000; // characters
const MAX_EXPANSIONS = 1000;
// A macro of the formula's own can grow: each expansion may be as long as the formula.
const DEFINES = /\\(?:[egx]?def|let|futurelet|(?:re|provide)?newcommand|(?:re|provide)command|DeclareMathOperator)(?![a-zA-Z])/;
const MAX_DEFINING_LENGTH = 400;
const MAX_DEFINING_EXPANSIONS = 100;
// An environment with a number of columns makes that many: it must stand there, as a small one.
const BEGIN = /\\begin(?![a-zA-Z])\s*/g;
const PLAIN_BEGIN = /^\{(?!(?:x*alignat|alignedat))[a-zA-Z]*\*?\}|^\{[a-zA-Z]+\*?\}\s*(?:\{\s*\d{1,2}\s*\}|\d)/;
const CHEMISTRY = /\\(?:ce|pu)(?![a-zA-Z])/;
const MAX_CHEMISTRY_LENGTH = 600;
const MAX_SIZE_EM = 25;
// Commands of packages that Temml lacks.
const MACROS = { "\\textdegree": "\\degree", "\\mathbbm": "\\mathbb", "\\coloneq": "\\coloneqq" };

/** The TeX cannot be drawn; the message says why, to a person. */
export class Unreadable extends Error {}

let temml = null;
let hasChemistry = false;

/** Tells whether what the formula needs has been loaded. */
export function isLoaded(tex) {
  return temml !== null && (hasChemistry || !CHEMISTRY.test(tex));
}

/** Loads what the formula needs. Rejects where the server does not answer. */
export async function load(tex) {
  addStyles("formulas.css");
  const loaded = await import("./temml/temml.js");
  if (CHEMISTRY.test(tex)) {
    await import("./temml/chemistry.js");
    hasChemistry = true;
  }
  temml = loaded.default;
}

/** Returns the MathML of a formula. Raises Unreadable. */
export function typeset(tex, isDisplayed) {
  const isDefining = DEFINES.test(tex);
  if (tex.length > longest(tex, isDefining)) throw new Unreadable(translate("markdown.formulaTooLong"));
  if (!tex.split(BEGIN).slice(1).every((rest) => PLAIN_BEGIN.test(rest))) throw new Unreadable(translate("markdown.formulaTooLarge"));
  try {
    const tree = temml.__renderToMathMLTree(tex, {
      displayMode: isDisplayed,
      throwOnError: true,
      trust: false,
      macros: { ...MACROS },
      maxExpand: isDefining ? MAX_DEFINING_EXPANSIONS : MAX_EXPANSIONS,
      maxSize: [MAX_SIZE_EM, MAX_SIZE_EM],
      wrap: isDisplayed ? "none" : "tex",
    });
    return buildMathml(tree);
  } catch (error) {
    throw new Unreadable(reasonFor(error), { cause: error });
  }
}

function longest(tex, isDefining) {
  if (isDefining) return MAX_DEFINING_LENGTH;
  return CHEMISTRY.test(tex) ? MAX_CHEMISTRY_LENGTH : MAX_LENGTH;
}

/** Temml's own words are English; a formula that is nested too deeply ends in a RangeError. */
function reasonFor(error) {
  if (error instanceof TooLarge || error instanceof RangeError) return translate("markdown.formulaTooLarge");
  if (!(error instanceof temml.ParseError)) return translate("markdown.formulaUnreadable");
  return translate("markdown.formulaError", { reason: error.message.replaceAll("\u0332", "").trim().slice(0, 200) });
}
