"""Hides the user name and password in the URL of a server."""

import re

_CREDENTIALS = re.compile(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", re.IGNORECASE)


def shown_url(url: str) -> str:
    """Returns the URL with "…" in place of the user name and password."""
    return _CREDENTIALS.sub(r"\1…@", url)
