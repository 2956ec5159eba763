"""Reads tables of the documents, each in its own form: Markdown, or three kinds of page text."""

import re
from collections.abc import Iterator

TYPE = r"(?:string|bool|object|array|integer|int|float|Usage|dict)"
_PARAMETERS = re.compile(
    r"^Param[\s\n]*OpenVINO Model Server.*?Type[\s\n]*Description$", re.S | re.M
)
_RUN_TOGETHER = re.compile(rf"^([a-z_.]+?)(?:⚠️)?{TYPE}")  # modelstring (required)Name of the model
# model string (required) Name of the model
_SPACED = re.compile(rf"^([\w.\[\]]+) (?:⚠️ )?(?:{TYPE}|Not supported)")
_NAME = re.compile(r"^[a-z_.\[\]]+$")


def parameter_tables(text: str) -> Iterator[list[str]]:
    """Yields the names in the first column of each table of parameters."""
    if re.search(r"^\| Param ", text, re.M):
        yield from _markdown_tables(text, "Param")
        return
    for header in _PARAMETERS.finditer(text):
        behind = text[header.end() :].lstrip("\n")
        if "\n\n" in header[0]:
            yield _names_in_cells(behind)
        else:
            yield _names_in_lines(
                behind, _SPACED if header[0].startswith("Param ") else _RUN_TOGETHER
            )


def field_tables(text: str) -> Iterator[list[str]]:
    """Yields the names in the first column of each table whose first header is `Field Name`."""
    yield from _markdown_tables(text, "Field Name")


def _markdown_tables(text: str, title: str) -> Iterator[list[str]]:
    for table in re.findall(rf"^\| {title} .*\n\|[-| ]+\n((?:\|.*\n?)+)", text, re.M):
        yield [row.split("|")[1].strip(" `") for row in table.splitlines()]


def _names_in_lines(text: str, row_form: re.Pattern[str]) -> list[str]:
    """Reads the names of a table with one row a line, up to the first empty line."""
    rows = text.split("\n\n", maxsplit=1)[0].splitlines()
    named = [row_form.match(row) for row in rows]
    assert all(named), rows
    return [name[1] for name in named if name is not None]


def _names_in_cells(text: str) -> list[str]:
    """Reads the names of a table whose cells are paragraphs.

    A row is a name, sometimes a warning sign, a type and a description.
    """
    cells, names = iter(text.split("\n\n")), []
    for cell in cells:
        if not _NAME.match(cell):
            break
        names.append(cell)
        if next(cells) == "⚠️":
            next(cells)
        next(cells)
    return names


def read_bullets_after(text: str, title: str) -> list[str]:
    """Returns the names in the bullet lists that follow lines which begin with `title`."""
    names = []
    for list_ in re.findall(rf"^(?:#+ )?{title}.*\n((?:\s*[•-] .*\n?)+)", text, re.M):
        names += re.findall(r"^\s*[•-] ([\w.]+)", list_, re.M)
    return names
