"""Reads the lexicons of the package misaki as data.

Source: `us_gold.json`, `us_silver.json`, `gb_gold.json` and `gb_silver.json` in `misaki/data`
(Apache-2.0). Each file maps a word to its phonemes, or to phonemes by part of speech.
"""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ouzel.phonemes.english.dialect import Dialect

DEFAULT = "DEFAULT"
LAST = "None"  # the part of speech of a word at the end of a clause
NAME = "NOUN"  # has the value None where capitals are an abbreviation: AM, US

# Phonemes of one word, by part of speech. None: the word is spelled.
Entry = Mapping[str, str | None]


class Lexicon:
    """The words of one dialect. Threads may share it."""

    def __init__(self, gold: dict[str, str | Entry], silver: dict[str, str | Entry]) -> None:
        self._gold = gold
        self._silver = silver

    def find(self, word: str) -> Entry | None:
        """Returns the phonemes of a word as it is spelled, by part of speech."""
        found = self._gold.get(word)
        if found is None:
            found = self._silver.get(word)
        return {DEFAULT: found} if isinstance(found, str) else found

    def find_any_case(self, word: str) -> Entry | None:
        """Returns the phonemes of a word, also if the lexicon begins it with a capital."""
        lower = word.lower()
        for spelling in (word, lower, lower.capitalize()):
            if (entry := self.find(spelling)) is not None:
                return entry
        return None


def select(entry: Entry, tag: str | None, is_last: bool) -> str | None:
    """Returns the phonemes for a part of speech; None means that the word is spelled."""
    if tag is not None and tag in entry:
        return entry[tag]
    if is_last and LAST in entry:
        return entry[LAST]
    return entry.get(DEFAULT)


def find_lexicons(dialect: Dialect) -> list[Path] | None:
    """Returns the files of a dialect, gold before silver, or None if misaki is not installed."""
    spec = find_spec("misaki")  # imports nothing: misaki is no part of another package
    for folder in (spec and spec.submodule_search_locations) or ():
        files = [
            Path(folder) / "data" / f"{dialect.value}_{kind}.json" for kind in ("gold", "silver")
        ]
        if all(file.is_file() for file in files):
            return files
    return None


def read_lexicon(files: list[Path] | None) -> Lexicon:
    """Reads the files of a dialect; without files the lexicon has no words."""
    if files is None:
        return Lexicon({}, {})
    gold, silver = (json.loads(file.read_bytes()) for file in files)
    return Lexicon(gold, silver)
