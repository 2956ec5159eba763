"""Reads a body of the type text/csv, as `decode_csv` of djl-serving's Python handlers does.

The first row names the columns. The column `inputs` has a text in each row; these texts are the
`inputs` of LMI's standard schema, and other columns are ignored. Without that column each row is an
object with a field for each column, and the objects are the `inputs`. LMI takes the columns of a
question and its context there; no model here answers these. The columns `text` and `text_pair`, or
`key` and `value`, make pairs for a ranking model; LMI takes these pairs only as JSON.

LMI fills missing cells with null and drops cells without a column. This server refuses such rows.
"""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import zip_longest

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject, log_ignored

_TEXTS = "inputs"
_PAIRS = (("text", "text_pair"), ("key", "value"))
# limit of commas and line ends in a body: each may begin a string
_MAX_SEPARATORS = 2**20
_MAX_ROWS = 2**16  # more rows than any endpoint takes
_MAX_SHOWN = 60  # longest part shown of the names of columns, in characters

# The length of a body is limited before.
csv.field_size_limit(2**31 - 1)


def read_csv(body: bytes) -> JsonObject:
    """Returns the fields of LMI's standard schema. Raises InvalidRequest."""
    rows = _rows(body)
    _, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    names = _choose_columns(columns)
    log_ignored({f"column {name}" for name in columns if name not in names})
    places = [columns.index(name) for name in names]
    cells = [[_cell(number, row, columns, place) for place in places] for number, row in rows]
    if not cells:
        raise InvalidRequest(
            "a CSV body must have a row behind the names of its columns, given none"
        )
    if names == (_TEXTS,):
        return {_TEXTS: [text for (text,) in cells]}
    return {_TEXTS: [dict(zip(names, row, strict=True)) for row in cells]}


def _choose_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of the columns to read."""
    found = next((names for names in ((_TEXTS,), *_PAIRS) if set(names) <= {*columns}), None)
    if found is None:
        given = ", ".join(columns)[:_MAX_SHOWN] or "nothing"
        raise InvalidRequest(
            "the first row of a CSV body must name the column inputs, or the columns text and "
            f"text_pair, given {given}"
        )
    for name in found:
        if columns.count(name) > 1:
            raise InvalidRequest(
                f"the first row of a CSV body must name the column {name} once, given it twice"
            )
    return found


def _cell(number: int, row: Sequence[str], columns: Sequence[str], place: int) -> str:
    if len(row) != len(columns):
        missing = [
            name or "without a name" for name, cell in zip_longest(columns, row) if cell is None
        ]
        hint = (
            f": the column {missing[0]} is missing"
            if missing
            else ": a text with a comma needs quotes"
        )
        raise InvalidRequest(
            f"row {number} of a CSV body must have {len(columns)} cells, as the first row has, "
            f"given {len(row)}{hint}"
        )
    if not row[place]:
        raise InvalidRequest(
            f"row {number} of a CSV body must have a text in the column {columns[place]}, "
            "given none"
        )
    return row[place]


def _rows(body: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows that are not empty, with their numbers, from 1."""
    num_separators = sum(body.count(separator) for separator in (b",", b"\n", b"\r"))
    if num_separators > _MAX_SEPARATORS:
        raise InvalidRequest(
            f"a CSV body must have <= {_MAX_SEPARATORS} commas and line ends, "
            f"given {num_separators}"
        )
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"a text/csv body must be UTF-8: {error.reason} at byte {error.start}"
        ) from error
    number = 0
    try:
        for number, row in enumerate(csv.reader(StringIO(text, newline=""), strict=True), 1):
            if number > _MAX_ROWS:
                raise InvalidRequest(f"a CSV body must have <= {_MAX_ROWS} rows, given more")
            if row:
                yield number, row
    except csv.Error as error:
        raise InvalidRequest(f"row {number + 1} of a CSV body is not valid CSV: {error}") from error
