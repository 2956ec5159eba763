"""Computes the keys of a request: its session, and chained digests of the pieces of its prompt.

Rules
1. The key of a piece covers everything before it: two prompts with a common key are equal up to its
   end.
2. The cuts of a prompt depend only on positions, so the keys of a conversation's turn are a prefix
   of the next turn's keys.
3. Pieces double in length after every `PIECES_PER_LENGTH`, so a long prompt has few keys. The loss
   at the end is less than one piece: a 64th of the prompt, except at its beginning.
"""

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import msgspec

PIECES_PER_LENGTH = 64
_DIGEST_BYTES = 8


class RequestKeys(msgspec.Struct, frozen=True):
    """The keys of a request. Lengths are in tokens, estimated if there was no tokenizer."""

    session: bytes  # equal in all turns of a conversation
    # chained keys of the prompt's whole pieces; the rest after them has no key
    blocks: tuple[bytes, ...]
    num_tokens: int  # tokens of the prompt in this request
    unit: int  # tokens of each of the first pieces
    # the server has the beginning of the prompt; its length is unknown here
    is_continued: bool = False

    def num_tokens_in(self, num_blocks: int) -> int:
        """Returns the number of tokens in the first `num_blocks` pieces."""
        return find_end(num_blocks, self.unit)


def find_end(num_pieces: int, unit: int) -> int:
    """Returns the end of the first `num_pieces` pieces; `unit` is the length of the first piece."""
    doublings, rest = divmod(num_pieces, PIECES_PER_LENGTH)
    return unit * (PIECES_PER_LENGTH * ((1 << doublings) - 1) + (rest << doublings))


def find_length(piece: int, unit: int) -> int:
    """Returns the length of the piece with this number."""
    return unit << (piece // PIECES_PER_LENGTH)


def cut_pieces(size: int, unit: int, *, first: int = 0) -> Iterator[tuple[int, int]]:
    """Yields begin and end of the whole pieces in `size`, from piece number `first` on."""
    begin = find_end(first, unit)
    while (end := begin + find_length(first, unit)) <= size:
        yield begin, end
        begin = end
        first += 1


def chain_key(parent: bytes, content: bytes) -> bytes:
    """Returns the key of a piece after the piece with the key `parent`."""
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
    """Returns the exact keys of a prompt, or of prompt and output after the end of a request.

    Requests that may not share a cache have different salts: the cache salt and the adapter's name.
    `pictures` has (first token, digest) of each picture. Without a `session`, the key of the
    prompt's first piece is the session. `known` has the keys of a beginning of the same tokens,
    which are not computed again.
    """
    blocks = [] if known is None else list(known.blocks)
    parent = blocks[-1] if blocks else chain_key(b"", salt.encode(errors="replace"))
    start = find_end(len(blocks), block_size)
    try:
        content = array("I", token_ids[start:]).tobytes()
    except OverflowError:  # no vocabulary has such ids; the engine will refuse them
        return RequestKeys(session or b"", (), len(token_ids), block_size)
    size = array("I").itemsize
    for begin, end in cut_pieces(len(token_ids), block_size, first=len(blocks)):
        shown = _shown(pictures, begin, end) if pictures else b""
        parent = chain_key(parent, content[size * (begin - start) : size * (end - start)] + shown)
        blocks.append(parent)
    if known is not None:
        session = known.session
    elif session is None:
        session = blocks[0] if blocks else chain_key(parent, content)
    return RequestKeys(session, tuple(blocks), len(token_ids), block_size)


def _shown(pictures: Sequence[tuple[int, bytes]], begin: int, end: int) -> bytes:
    """Returns bytes that distinguish the pictures of the tokens [begin, end)."""
    return b"".join(
        (position - begin).to_bytes(8, "little") + digest
        for position, digest in pictures
        if begin <= position < end
    )
