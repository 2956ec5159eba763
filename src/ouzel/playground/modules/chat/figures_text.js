// The figures of an answer as one line.

export function figuresText(figures) {
  if (figures === null) return "";
  const { completionTokens, tokensPerSecond, timeToFirstToken, promptTokens, cachedTokens, isCounted } = figures;
  const parts = [
    `${isCounted ? "about " : ""}${completionTokens} ${completionTokens === 1 ? "token" : "tokens"}`,
    `${rounded(tokensPerSecond)} tokens/s`,
    `first after ${duration(timeToFirstToken)}`,
    promptTokens === null ? "" : `prompt ${promptTokens}${cachedTokens ? `, ${cachedTokens} of them cached` : ""}`,
  ];
  return parts.filter(Boolean).join(" · ");
}

function rounded(number) {
  return number >= 100 ? String(Math.round(number)) : number.toPrecision(3);
}

function duration(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
