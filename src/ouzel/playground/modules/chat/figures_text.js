// The figures of an answer as one line.

import { formatNumber, translate } from "../texts/texts.js";

export function figuresText(figures) {
  if (figures === null) return "";
  const { completionTokens, tokensPerSecond, timeToFirstToken, promptTokens, cachedTokens, isCounted } = figures;
  const parts = [
    translate(isCounted ? "answer.aboutTokens" : "answer.tokens", { count: completionTokens }),
    tokensPerSecond === null ? "" : translate("answer.tokensPerSecond", { rate: rounded(tokensPerSecond) }),
    timeToFirstToken === null ? "" : translate("answer.firstAfter", { time: duration(timeToFirstToken) }),
    promptText(promptTokens, cachedTokens),
  ];
  return parts.filter(Boolean).join(" · ");
}

function promptText(tokens, cached) {
  if (tokens === null) return "";
  return cached ? translate("answer.promptCached", { tokens, cached }) : translate("answer.prompt", { tokens });
}

function rounded(number) {
  return formatNumber(number, number >= 100 ? { maximumFractionDigits: 0 } : { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
}

function duration(milliseconds) {
  if (milliseconds < 1000) return translate("answer.milliseconds", { number: Math.round(milliseconds) });
  return translate("answer.seconds", { number: formatNumber(milliseconds / 1000, { minimumFractionDigits: 1, maximumFractionDigits: 1 }) });
}
