"""Bodies are parsed in one go, while no other thread runs, and what is made of them is longer than they are.

Both go by the number of values, not by the bytes, so that number is limited before anything is parsed. It is counted
outside of strings: a text of many megabytes is one value, whatever it is about.
"""

from collections.abc import Iterator

import numpy as np

from ouzel.errors import InvalidRequest

MAX_SHORT_BYTES = 2**18  # nothing of that length has too many
MAX_VALUES = 2**21  # a million token ids and more
# objects, lists and strings, of which names of fields are some: they cost most
MAX_NESTED_OR_TEXT = MAX_SHORT_BYTES
_CHUNK_BYTES = 2**20
_COMMA, _QUOTE = b',"'
_OPENING = ord("{")
_CASE = 0x20  # by which [ differs from {


def check_num_values(body: bytes) -> None:
    """Raises InvalidRequest. It counts right up to where a body is no JSON any more, and there parsing ends."""
    num_values = num_nested_or_text = 0
    is_inside = False  # of a string
    for chunk in _chunks(body):
        codes = np.frombuffer(chunk.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
        quotes = codes == _QUOTE
        inside = (np.cumsum(quotes, dtype=np.uint8) & 1) != is_inside
        openings = int(np.count_nonzero(((codes | _CASE) == _OPENING) & ~inside))
        num_values += openings + int(np.count_nonzero((codes == _COMMA) & ~inside))
        num_nested_or_text += openings + int(np.count_nonzero(quotes & inside))
        is_inside = bool(inside[-1]) if len(inside) else is_inside
    _refuse_more(num_values, MAX_VALUES, "values")
    _refuse_more(
        num_nested_or_text, MAX_NESTED_OR_TEXT, "objects, lists, strings and names of fields"
    )


def _chunks(body: bytes) -> Iterator[bytes]:
    """None ends within an escape."""
    start = 0
    while start < len(body):
        chunk = body[start : start + _CHUNK_BYTES]
        num_backslashes = len(chunk) - len(chunk.rstrip(b"\\"))
        if num_backslashes % 2 and len(chunk) > 1:
            chunk = chunk[:-1]
        start += len(chunk)
        yield chunk


def _refuse_more(number: int, limit: int, what: str) -> None:
    if number > limit:
        raise InvalidRequest(f"the body must have <= {limit} {what}, given {number}")
