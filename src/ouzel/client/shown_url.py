"""The URL of a server may hold a name and a password, which are shown nowhere."""

import re

_CREDENTIALS = re.compile(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", re.IGNORECASE)


def shown_url(url: str) -> str:
    """Returns it with a mark in place of what stands before its host."""
    return _CREDENTIALS.sub(r"\1…@", url)
