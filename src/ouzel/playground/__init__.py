"""The playground's pages, styles, modules and texts are data.

A browser gets them as they are, except for the pages: they hold `{{key}}` in place of each text.
"""

import json
from collections.abc import Mapping
from pathlib import Path

DIRECTORY = Path(__file__).parent
LANGUAGES = ("en", "de", "es", "fr", "zh", "ja", "ar")
RIGHT_TO_LEFT = frozenset({"ar"})
_KINDS = (".html", ".css", ".js", ".svg", ".png", ".json")


def file_names() -> list[str]:
    """Returns the names of all files that a browser may ask for, as `modules/main.js`."""
    paths = sorted(path for path in DIRECTORY.rglob("*") if path.suffix in _KINDS)
    return [path.relative_to(DIRECTORY).as_posix() for path in paths]


def read_texts(language: str) -> Mapping[str, str | Mapping[str, str]]:
    """Returns the texts of a language by key; a text with plural forms has them by category."""
    path = DIRECTORY / "texts" / f"{language}.json"
    texts: Mapping[str, str | Mapping[str, str]] = json.loads(path.read_bytes())
    return texts
