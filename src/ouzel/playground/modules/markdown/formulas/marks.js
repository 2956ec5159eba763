// The marks around a formula in a text. Sums of money are no formulas: `$…$` has no blank inside of its marks, no word before
// and no digit behind them.

export function opensFormula(source, at, before) {
  return /[^\s$]/.test(source[at + 1] ?? "") && !/[a-zA-Z\d]/.test(before);
}

/** Returns where the mark stands that ends a formula; null where it may come later, and -1 where there is no formula. */
export function formulaEnd(source, start, end, farthest) {
  const near = source.slice(0, farthest);
  let at = near.indexOf(end, start);
  if (end !== "$") return at > start ? at : null;
  while (at >= 0 && near[at - 1] === "\\") at = near.indexOf(end, at + 1);
  const codeAt = near.indexOf("`", start); // a sum of money may stand before code
  if (codeAt >= 0 && (at < 0 || codeAt < at)) return -1;
  if (at < 0) return null;
  // Only the next `$` may end a formula: between `$5` and `$10` there is none.
  return at > start && !/\s/.test(near[at - 1]) && !/\d/.test(source[at + 1] ?? "") ? at : -1;
}
