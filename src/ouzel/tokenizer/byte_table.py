"""Tabulates the bytes of every token, if the tokenizer's decoder only concatenates bytes.

Two kinds of decoders do so, and nearly all language models have one of them:

- `ByteLevel` (GPT-2, Llama 3, Qwen, …): each character of a token is one byte in GPT-2's
  alphabet. A token with a character outside the alphabet (an added token) stands for its own UTF-8.
  A broken character becomes one U+FFFD.
- SentencePiece style (Llama 2, Gemma, Mistral, …): `Replace` turns U+2581 into a space,
  `ByteFallback` reads `<0xNN>` as a byte, `Fuse` joins, `Strip` drops one space from the start of
  the output. Every invalid byte becomes one U+FFFD, as in SentencePiece. (The `tokenizers` library
  also replaces the valid characters beside an invalid byte; it can do so only because it sees the
  whole output.)
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ouzel.checkpoint.model_files import JsonObject

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True, slots=True)
class ByteTable:
    pieces: list[bytes]  # bytes by token id; empty for an id without a token
    start_to_strip: str  # one character, or "": dropped once from the start of the output
    replaces_each_byte: bool  # True: U+FFFD for each invalid byte; False: for each broken character


def build_byte_table(decoder: JsonObject | None, tokens: Mapping[int, str]) -> ByteTable | None:
    """Makes the table from the entry `decoder` of `tokenizer.json`; None if the decoder does more.

    `tokens` maps token ids to spellings.
    """
    steps = _flatten(decoder)
    if [step["type"] for step in steps] == ["ByteLevel"]:
        return ByteTable(_pieces(_byte_level_bytes(), tokens), "", replaces_each_byte=False)
    replacements = _take_replacements(steps)
    has_byte_fallback = _take(steps, {"type": "ByteFallback"})
    if not _take(steps, {"type": "Fuse"}):
        return None
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    start_to_strip = " " if _take(steps, strip) else ""
    if steps:
        return None
    to_bytes = _sentencepiece_bytes(replacements, has_byte_fallback)
    return ByteTable(
        _pieces(to_bytes, tokens), start_to_strip, replaces_each_byte=has_byte_fallback
    )


def _flatten(decoder: JsonObject | None) -> list[JsonObject]:
    if decoder is None:
        return []
    inner = decoder.get("decoders")
    if decoder.get("type") != "Sequence" or not isinstance(inner, list):
        return [decoder]
    return [step for part in inner for step in _flatten(part)]


def _take(steps: list[JsonObject], expected: JsonObject) -> bool:
    """Removes the first step if it equals `expected`, and tells whether it did."""
    if steps and steps[0] == expected:
        del steps[0]
        return True
    return False


def _take_replacements(steps: list[JsonObject]) -> list[tuple[str, str]]:
    """Removes and returns the leading `Replace` steps that have plain text patterns."""
    replacements: list[tuple[str, str]] = []
    while steps and steps[0]["type"] == "Replace":
        pattern, content = steps[0].get("pattern"), steps[0].get("content")
        old = pattern.get("String") if isinstance(pattern, dict) else None
        if not isinstance(old, str) or not isinstance(content, str):
            break
        replacements.append((old, content))
        del steps[0]
    return replacements


def _pieces(to_bytes: Callable[[str], bytes], tokens: Mapping[int, str]) -> list[bytes]:
    pieces = [b""] * (max(tokens, default=-1) + 1)
    for token_id, token in tokens.items():
        pieces[token_id] = to_bytes(token)
    return pieces


def _sentencepiece_bytes(
    replacements: list[tuple[str, str]], has_byte_fallback: bool
) -> Callable[[str], bytes]:
    def to_bytes(token: str) -> bytes:
        for old, new in replacements:
            token = token.replace(old, new)
        byte_token = _BYTE_TOKEN.fullmatch(token) if has_byte_fallback else None
        return bytes.fromhex(byte_token[1]) if byte_token else token.encode()

    return to_bytes


def _byte_level_bytes() -> Callable[[str], bytes]:
    # Latin-1 encodes the code points below 256 as bytes, so the alphabet is mapped to them.
    # Characters below 256 outside the alphabet are mapped beyond Latin-1: then encoding fails, and
    # the token's own UTF-8 is used.
    to_latin_1 = dict.fromkeys(range(256), 0xFFFD) | {
        ord(character): byte for byte, character in enumerate(_gpt2_alphabet())
    }

    def to_bytes(token: str) -> bytes:
        try:
            return token.translate(to_latin_1).encode("latin-1")
        except UnicodeEncodeError:
            return token.encode()

    return to_bytes


def _gpt2_alphabet() -> list[str]:
    """Returns GPT-2's character for each byte: the byte itself if it is printable in Latin-1, else
    the next free character from U+0100.
    """
    printable = {
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    }
    substitutes = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(substitutes)) for byte in range(256)]
