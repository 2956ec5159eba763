"""Limits the number of values in a body before it is parsed.

Parsing blocks all other threads, and the parsed objects need more memory than the body. Both costs
grow with the number of values. Values are counted outside of strings: a long text is one value.
"""

from collections.abc import Iterator

import numpy as np

from ouzel.errors import InvalidRequest

# A body of this length cannot have too many values.
MAX_SHORT_BYTES = 2**18
MAX_VALUES = 2**21  # enough for more than a million token ids
# Objects, lists and strings, names of fields included, cost the most.
MAX_NESTED_OR_TEXT = MAX_SHORT_BYTES
_CHUNK_BYTES = 2**20
_COMMA, _QUOTE = b',"'
_OPENING = ord("{")
_CASE = 0x20  # the bit that differs between [ and {


def check_num_values(body: bytes) -> None:
    """Raises InvalidRequest if a body has too many values.

    If the body is invalid JSON, the count is right up to the fault, where parsing ends as well.
    """
    num_values = num_nested_or_text = 0
    is_inside = False  # whether the chunk begins inside a string
    for chunk in _cut(body):
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


def _cut(body: bytes) -> Iterator[bytes]:
    """Yields the body in chunks. No chunk ends within an escape sequence."""
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
