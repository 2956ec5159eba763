"""Limits how much a tokenizer's normalizer may lengthen a text.

A normalizer may replace texts by longer ones, in many steps: 40 steps that double a text make a
terabyte out of a single character. The limit is checked from the file alone.
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

MAX_GROWTH = 1024  # the highest value in known files is 40
# A regular expression that begins with one character, or a class, at least once. Later parts can
# only lengthen the match.
_ATOM = r"(?: \\[pP]\{[^{}]*\} | \\[sSdDwWnrt\W] | \[\^?[^\[\]\\&]+\] | [^\W_] | \ )"
_AT_LEAST_ONCE = r"(?: \+ | \{[1-9]\d*(?:,\d*)?\} )?"
_TAKES_A_CHARACTER = re.compile(rf"\^? {_ATOM} {_AT_LEAST_ONCE} (?![*?+{{]) [^|]*", re.VERBOSE)
_UNCERTAIN = ("(?", r"\K")  # comments, modes, assertions; \K drops the match so far


class _File(msgspec.Struct, frozen=True):
    normalizer: object = None


def check_growth(tokenizer_json: str, path: Path) -> None:
    """Raises ModelLoadError if the normalizer in `tokenizer_json` can lengthen a text too much.

    `path` is the file's path, for the error.
    """
    growth = estimate_growth(msgspec.json.decode(tokenizer_json, type=_File).normalizer)
    if growth > MAX_GROWTH:
        limit = f"replacements must make <= {MAX_GROWTH} characters of one"
        raise ModelLoadError(f"{path}: normalizer: {limit}, given at least {growth:.4g}")


def estimate_growth(normalizer: object) -> float:
    """Returns an upper bound of the characters that the replacements make out of one character.

    Unicode's normal forms are ignored: their growth is bounded and does not multiply.
    """
    growth = 1.0
    for step in _steps(normalizer):
        growth *= _estimate_step_growth(step)
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


def _estimate_step_growth(step: Mapping[str, object]) -> float:
    match step:
        case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(content)}:
            # With an empty pattern, the library inserts the content between all characters.
            return max(1.0, len(content) / len(pattern)) if pattern else 1.0 + len(content)
        case {"type": "Replace", "pattern": {"Regex": str(pattern)}, "content": str(content)} if (
            _takes_text(pattern)
        ):
            return max(1.0, len(content))
        case {"type": "Replace", "content": str(content)}:
            return 1.0 + len(content)  # the regular expression may match between two characters
        case {"type": "Prepend", "prepend": str(text)}:
            return 1.0 + len(text)
        case {"type": "Precompiled", "precompiled_charsmap": str(charsmap)}:
            return max(1.0, _longest_in(charsmap))
        case _:
            return 1.0


def _takes_text(pattern: str) -> bool:
    """Tells whether each match of the regular expression certainly contains a character."""
    is_certain = not any(part in pattern for part in _UNCERTAIN)
    return is_certain and _TAKES_A_CHARACTER.fullmatch(pattern) is not None


def _longest_in(charsmap: str) -> float:
    """Returns the length of the longest text in SentencePiece's table.

    The table consists of the size of a trie in bytes, the trie, and the texts.
    """
    try:
        table = base64.b64decode(charsmap)
        (trie_bytes,) = struct.unpack_from("<I", table)
    except (binascii.Error, ValueError, struct.error):
        return math.inf
    texts = table[4 + trie_bytes :].split(b"\0")
    return max((len(text.decode(errors="replace")) for text in texts), default=1)
