"""A tokenizer's normalizer may replace texts by longer ones, one replacement after the other: 40 that double are a
terabyte for a single character. The file says how much a text may grow.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ouzel.errors import ModelLoadError

MAX_GROWTH = 1024  # known files: 40 at most
# A regular expression that begins with one character, or one of a class, at least once. Later parts can add to it only.
_ATOM = r"(?: \\[pP]\{[^{}]*\} | \\[sSdDwWnrt\W] | \[\^?[^\[\]\\&]+\] | [^\W_] | \ )"
_AT_LEAST_ONCE = r"(?: \+ | \{[1-9]\d*(?:,\d*)?\} )?"
_TAKES_A_CHARACTER = re.compile(rf"\^? {_ATOM} {_AT_LEAST_ONCE} (?![*?+{{]) [^|]*", re.VERBOSE)
_UNCERTAIN = ("(?", r"\K")  # comments, modes and assertions; what gives back the text before it


class _File(msgspec.Struct, frozen=True):
    normalizer: object = None


def check_growth(tokenizer_json: str, path: Path) -> None:
    """Raises ModelLoadError. `path` is the file's."""
    growth = growth_of(msgspec.json.decode(tokenizer_json, type=_File).normalizer)
    if growth > MAX_GROWTH:
        limit = f"the replacements must make <= {MAX_GROWTH} characters of one"
        raise ModelLoadError(f"{path}: normalizer: {limit}, found {growth:.4g} at least")


def growth_of(normalizer: object) -> float:
    """Returns an upper bound of the characters that are made of one by the replacements of `tokenizer.json`.

    Unicode's own normal forms are left out: their growth is bounded, and it does not multiply.
    """
    growth = 1.0
    for step in _steps(normalizer):
        growth *= _growth_of_step(step)
        if growth > MAX_GROWTH:
            return growth
    return growth


def _steps(normalizer: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(normalizer, Mapping):
        return
    inner = normalizer.get("normalizers")
    if isinstance(inner, Sequence) and not isinstance(inner, str):
        for each in inner:
            yield from _steps(each)
    else:
        yield normalizer


def _growth_of_step(step: Mapping[str, object]) -> float:
    match step:
        case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(content)}:
            # Without a pattern the library inserts the content between all characters.
            return max(1.0, len(content) / len(pattern)) if pattern else 1.0 + len(content)
        case {"type": "Replace", "pattern": {"Regex": str(pattern)}, "content": str(content)} if (
            _takes_text(pattern)
        ):
            return max(1.0, len(content))
        case {"type": "Replace", "content": str(content)}:
            return 1.0 + len(content)  # a regular expression may match between two characters
        case {"type": "Prepend", "prepend": str(text)}:
            return 1.0 + len(text)
        case {"type": "Precompiled", "precompiled_charsmap": str(charsmap)}:
            return max(1.0, _longest_in(charsmap))
        case _:
            return 1.0


def _takes_text(pattern: str) -> bool:
    """Says whether each match of the regular expression certainly has a character."""
    is_certain = not any(part in pattern for part in _UNCERTAIN)
    return is_certain and _TAKES_A_CHARACTER.fullmatch(pattern) is not None


def _longest_in(charsmap: str) -> float:
    """Returns the length of the longest text in SentencePiece's table: a trie of so many bytes, then texts."""
    try:
        table = base64.b64decode(charsmap)
        (trie_bytes,) = struct.unpack_from("<I", table)
    except (binascii.Error, ValueError, struct.error):
        return math.inf
    return max(
        (len(text.decode(errors="replace")) for text in table[4 + trie_bytes :].split(b"\0")),
        default=1,
    )
