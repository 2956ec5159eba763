"""A request has keys, by which its prompt is found again: a session, and the pieces of the prompt as chained digests.

Rules
1. The key of a piece stands for all that is before it too: two prompts with a key in common begin alike up to there.
2. Where a prompt is cut depends on nothing but the position, so the keys of a conversation's turn are a prefix of the
   next turn's.
3. Pieces double in length after every `PIECES_PER_LENGTH`, so that a long prompt has few keys. What is found of it is
   less than what was seen by one piece at most: a 64th of it, but at its beginning.
"""

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import msgspec

PIECES_PER_LENGTH = 64
_DIGEST_BYTES = 8


class RequestKeys(msgspec.Struct, frozen=True):
    """A routing policy knows a request by these. Lengths are in tokens, estimated where no tokenizer was asked."""

    session: bytes  # the same in all turns of a conversation
    blocks: tuple[
        bytes, ...
    ]  # of the pieces of the prompt, chained; what is behind the last whole piece has none
    num_tokens: int  # of the prompt, as far as the request has it
    unit: int  # tokens of the first pieces
    # the server has the beginning of the prompt, and nobody here knows how long it is
    is_continued: bool = False

    def num_tokens_in(self, num_blocks: int) -> int:
        """Returns how many tokens the first pieces have."""
        return end_of(num_blocks, self.unit)


def end_of(num_pieces: int, unit: int) -> int:
    """Returns where so many pieces end, the first of which has the length `unit`."""
    doublings, rest = divmod(num_pieces, PIECES_PER_LENGTH)
    return unit * (PIECES_PER_LENGTH * ((1 << doublings) - 1) + (rest << doublings))


def length_of(piece: int, unit: int) -> int:
    """Returns the length of the piece with this number."""
    return unit << (piece // PIECES_PER_LENGTH)


def pieces(size: int, unit: int, *, first: int = 0) -> Iterator[tuple[int, int]]:
    """Gives begin and end of the whole pieces of what has this size, from piece number `first` on."""
    begin = end_of(first, unit)
    while (end := begin + length_of(first, unit)) <= size:
        yield begin, end
        begin = end
        first += 1


def chained(parent: bytes, content: bytes) -> bytes:
    """Returns the key of a piece behind the one with the key `parent`."""
    return blake2b(content, digest_size=_DIGEST_BYTES, key=parent).digest()


def make_token_keys(
    token_ids: Sequence[int],
    *,
    salt: str = "",
    block_size: int = 16,
    pictures: Sequence[tuple[int, bytes]] = (),
    session: bytes | None = None,
    known: RequestKeys | None = None,
) -> RequestKeys:
    """Returns the exact keys of a prompt; or of prompt and output, when its request has ended.

    Requests that may not share a cache have different salts: the cache salt and the adapter's name. `pictures` are the
    digests of what some tokens stand for, with the position of the first of these. Without a `session` the
    prompt's first piece is it. `known` are the keys of a beginning of the same tokens, which are not made again.
    """
    blocks = [] if known is None else list(known.blocks)
    parent = blocks[-1] if blocks else chained(b"", salt.encode(errors="replace"))
    start = end_of(len(blocks), block_size)
    try:
        content = array("I", token_ids[start:]).tobytes()
    except OverflowError:  # no vocabulary has such ids, and the engine will say so
        return RequestKeys(session or b"", (), len(token_ids), block_size)
    size = array("I").itemsize
    for begin, end in pieces(len(token_ids), block_size, first=len(blocks)):
        shown = _shown(pictures, begin, end) if pictures else b""
        parent = chained(parent, content[size * (begin - start) : size * (end - start)] + shown)
        blocks.append(parent)
    if known is not None:
        session = known.session
    elif session is None:
        session = blocks[0] if blocks else chained(parent, content)
    return RequestKeys(session, tuple(blocks), len(token_ids), block_size)


def _shown(pictures: Sequence[tuple[int, bytes]], begin: int, end: int) -> bytes:
    """Returns what tells the tokens [begin, end) apart from equal ids that stand for other pictures."""
    return b"".join(
        (position - begin).to_bytes(8, "little") + digest
        for position, digest in pictures
        if begin <= position < end
    )
