"""Rebuilds the merges of byte-pair encoding from the tokens alone.

The id of a token is its rank: a pair of tokens is joined first if the joined token has the lowest
id. So a merge joins the two tokens into which the earlier tokens encode the new one.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError

_PRINTABLE = (range(ord("!"), ord("~") + 1), range(ord("¡"), ord("¬") + 1), range(0xAE, 0x100))


def make_byte_alphabet() -> list[str]:
    """Returns GPT-2's character for each byte: printable ones of Latin-1 stand for themselves."""
    substitutes = iter(range(256, 512))
    return [
        chr(byte) if any(byte in printable for printable in _PRINTABLE) else chr(next(substitutes))
        for byte in range(256)
    ]


def encode_bytes(text: bytes, ranks: Mapping[bytes, int], below: int) -> list[bytes]:
    """Joins bytes to tokens whose ids are less than `below`."""
    parts = [text[place : place + 1] for place in range(len(text))]
    while len(parts) > 1:
        joined = [ranks.get(a + b, below) for a, b in pairwise(parts)]
        lowest = min(joined)
        if lowest >= below:
            break
        place = joined.index(lowest)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


def rebuild_merges(tokens: Sequence[bytes], source: object) -> list[tuple[bytes, bytes]]:
    """Returns the pairs of tokens that are joined, in their order; empty tokens are unused ids.

    Raises ModelLoadError, which names the source, if a token is no pair of earlier tokens.
    """
    ranks: dict[bytes, int] = {}
    for token_id, token in enumerate(tokens):
        if token and ranks.setdefault(token, token_id) != token_id:
            raise ModelLoadError(
                f"{source}: tokens must differ, found {brief(token.hex())} at {token_id} again"
            )
    if any(bytes([byte]) not in ranks for byte in range(256)):
        raise ModelLoadError(f"{source}: each byte must be a token")
    merges = []
    for token_id, token in enumerate(tokens):
        if len(token) <= 1:
            continue  # a byte, or an id without a token
        parts = encode_bytes(token, ranks, token_id)
        if len(parts) != 2:
            raise ModelLoadError(
                f"{source}: token {token_id} must consist of two earlier ones, "
                f"found {len(parts)} parts"
            )
        merges.append((parts[0], parts[1]))
    return merges
