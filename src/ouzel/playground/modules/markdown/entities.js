// Character references. Of the names of HTML those are known that texts use; others are shown as they are written.

const NAMES = new Map(
  Object.entries({
    "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos", "\u00a0": "nbsp", "\u2002": "ensp", "\u2003": "emsp",
    "\u2009": "thinsp", "\u200b": "ZeroWidthSpace", "\u00ad": "shy", "©": "copy", "®": "reg", "™": "trade", "§": "sect",
    "¶": "para", "°": "deg", "±": "plusmn", "×": "times", "÷": "divide", "−": "minus", "·": "middot", "•": "bull",
    "…": "hellip", "–": "ndash", "—": "mdash", "‘": "lsquo", "’": "rsquo", "“": "ldquo", "”": "rdquo", "«": "laquo",
    "»": "raquo", "¡": "iexcl", "¿": "iquest", "¢": "cent", "£": "pound", "¥": "yen", "€": "euro", "µ": "micro",
    "½": "frac12", "¼": "frac14", "¾": "frac34", "²": "sup2", "³": "sup3", "¹": "sup1", "←": "larr", "→": "rarr",
    "↑": "uarr", "↓": "darr", "↔": "harr", "⇐": "lArr", "⇒": "rArr", "⇔": "hArr", "∞": "infin", "≈": "asymp", "≠": "ne",
    "≤": "le", "≥": "ge", "≡": "equiv", "√": "radic", "∑": "sum", "∏": "prod", "∫": "int", "∂": "part", "∇": "nabla",
    "∈": "isin", "∉": "notin", "∅": "empty", "∀": "forall", "∃": "exist", "∧": "and", "∨": "or", "∩": "cap", "∪": "cup",
    "⊂": "sub", "⊃": "sup", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta",
    "λ": "lambda", "μ": "mu", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega", "Γ": "Gamma",
    "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ω": "Omega", "ä": "auml",
    "ö": "ouml", "ü": "uuml", "Ä": "Auml", "Ö": "Ouml", "Ü": "Uuml", "ß": "szlig", "é": "eacute", "è": "egrave",
    "à": "agrave", "ç": "ccedil", "ñ": "ntilde", "♠": "spades", "♥": "hearts", "♦": "diams", "♣": "clubs", "✓": "check",
  }).map(([character, name]) => [name, character]),
);
export const ENTITY = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z][a-zA-Z\d]{1,31}));/y;

/** Returns the character that a match of ENTITY stands for; null where the name is not known. */
export function characterOf([, decimal, hexadecimal, name]) {
  if (name !== undefined) return NAMES.get(name) ?? null;
  const code = decimal === undefined ? parseInt(hexadecimal, 16) : parseInt(decimal, 10);
  const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}

/** Returns a text with its character references and escapes replaced, as it stands in an address. */
export function unescaped(text) {
  return text.replace(/\\([!-/:-@[-`{-~])|&[#\w]{1,32};/g, (written, escape) => {
    if (escape !== undefined) return escape;
    ENTITY.lastIndex = 0;
    const match = ENTITY.exec(written);
    return (match && characterOf(match)) ?? written;
  });
}
