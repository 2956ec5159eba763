"""Aligns rows of text in columns."""

from collections.abc import Sequence

from ouzel.terminal.harmless import harmless_line


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """Returns the lines of a table, the heads first.

    `right` names the columns of numbers. The last column may be of any length.

    Cells may hold text from strangers: it is made harmless.
    """
    rows = [[harmless_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    aligns = [str.rjust if head in right else str.ljust for head in heads]
    lines = (
        "  ".join(
            align(text, width) for align, text, width in zip(aligns, row, widths, strict=True)
        ).rstrip()
        for row in [heads, *rows]
    )
    return "".join(line + "\n" for line in lines)
