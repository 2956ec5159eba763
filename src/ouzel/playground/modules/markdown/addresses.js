// Which addresses a link may have. A model may write any text, so what is not named here is no link.

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** Returns the whole address as a browser will read it; null where it is not of a scheme that leads to a page or to mail. */
export function safeAddress(text) {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  return SCHEMES.has(url.protocol) ? url.href : null;
}

/** Returns the whole address of a page; null where it is another kind of address. */
export function pageAddress(text) {
  const address = safeAddress(text);
  return address?.startsWith("http") ? address : null;
}
