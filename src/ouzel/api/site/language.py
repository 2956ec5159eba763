"""Chooses the language of the playground's pages for a request."""

import re
from collections.abc import Sequence

from starlette.requests import Request

COOKIE = "ouzel-language"  # the page stores a person's own choice in it
_ENTRY = re.compile(r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9-]*)?\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?")


def choose_language(request: Request, languages: Sequence[str]) -> str:
    """Returns one of `languages`: the person's choice, or the browser's favourite.

    The first language is the default. Subtags are ignored, so `de-AT` is `de` (RFC 9110, 12.5.4).
    """
    chosen = request.cookies.get(COOKIE, "")
    if chosen in languages:
        return chosen
    best, best_weight = languages[0], 0.0
    for entry in request.headers.get("accept-language", "").split(","):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            continue
        language, weight = match[1].lower(), float(match[2] or 1)
        if language in languages and weight > best_weight:
            best, best_weight = language, weight
    return best
