// The choice of the page's language. The server reads it from a cookie, and sends the page in that language.

import { ROOT } from "../api.js";
import { LANGUAGE } from "./texts.js";

const COOKIE = "ouzel-language";
const MAX_AGE_S = 365 * 24 * 3600;

/** Shows the language of the page in `select`. Another choice loads the page again. */
export function listenToLanguage(select) {
  select.value = LANGUAGE;
  select.addEventListener("change", () => {
    document.cookie = `${COOKIE}=${select.value}; path=${ROOT.pathname}; max-age=${MAX_AGE_S}; samesite=strict`;
    location.reload();
  });
}
