// The marks around a formula in a text. Sums of money are no formulas: `$…$` has no blank inside of its marks, no word before
// and no digit behind them.

export function opensFormula(source, at, before) {
  return /[^\s$]/.test(source[at + 1] ?? "") && !/[a-zA-Z\d]/.test(before);
}

/** Returns where the mark stands that ends a formula; null where it may come later, and -1 where there is no formula. */
export function formulaEnd(source, start, end, farthest) {
  const near = source.slice(0, farthest);
  let at = near.indexOf(end, start);
  while (end === "$" && at >= 0 && !closes(source, start, at)) at = near.indexOf(end, at + 1);
  const codeAt = end === "$" ? near.indexOf("`", start) : -1; // a sum of money may stand before code
  if (codeAt >= 0 && (at < 0 || codeAt < at)) return -1;
  return at > start ? at : null;
}

function closes(source, start, at) {
  return at > start && !/[\s\\]/.test(source[at - 1]) && !/\d/.test(source[at + 1] ?? "");
}
