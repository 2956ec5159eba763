"""Draws the picture at the top of RESULTS.md from the tables of that page.

    uv run python -m benchmarks.picture

Each group of bars has a scale of its own: its longest bar is the fastest product.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")
PICTURE = Path(__file__).parent / "plots" / "users.svg"

PRODUCTS = ("Ouzel", "OpenVINO GenAI", "llama.cpp")
COLOURS = ("#0b6e4f", "#9aa9c4", "#d8a45c")
GROUPS = {  # the title of a group of bars -> the row of the tables
    "One user": "decode, context 32, batch 1",
    "8 users at once": "decode, context 32, batch 8",
    "32 users at once": "decode, context 32, batch 32",
    "Reading a prompt of 1,024 tokens": "prefill 1024",
}


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    heading: str  # heading of the table in the page
    columns: tuple[str, ...]  # columns of the products, in the order of `PRODUCTS`


PANELS = (
    Panel(
        "0.6 billion parameters, 8 bits (Qwen3-0.6B)",
        "qwen3-0.6b, 8 bits",
        ("Ouzel int8", "GenAI int8", "llama.cpp Q8_0"),
    ),
    Panel(
        "4 billion parameters, 4 bits (Qwen3-4B)",
        "qwen3-4b, 4 bits",
        ("Ouzel int4, head int8", "GenAI int4, head int8", "llama.cpp Q4_0, head Q6_K"),
    ),
)

WIDTH, PANEL_WIDTH, MARGIN = 880, 410, 30
BAR_HEIGHT, BAR_STEP, BAR_ROOM = 14, 18, 270
FIRST_GROUP, GROUP_STEP = 112, 88
HEIGHT = FIRST_GROUP + len(GROUPS) * GROUP_STEP + 22


def read_table(page: str, heading: str) -> dict[str, dict[str, float]]:
    """Returns row name -> column name -> first number of the cell, of the table below a `###`
    heading.

    A cell without a number is left out.
    """
    _, found, rest = page.partition(f"\n### {heading}\n")
    if not found:
        raise ValueError(f"RESULTS.md must have the heading `### {heading}`")
    section = re.split(r"^#|^<!-- ", rest, maxsplit=1, flags=re.M)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    columns = [name.removesuffix(", tokens/s") for name in header[1:]]
    table = {}
    for name, *cells in rows:
        numbers = zip(columns, (re.match(r"[\d,.]+\d", cell) for cell in cells), strict=True)
        table[name] = {
            column: float(number[0].replace(",", "")) for column, number in numbers if number
        }
    return table


def draw(page: str) -> str:
    """Returns the SVG document for the page's text."""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" role="img">',
        "<title>Tokens per second of Ouzel, OpenVINO GenAI and llama.cpp</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(MARGIN, 30, "Tokens per second on two CPU cores, all users together", size=17),
        *_legend(),
    ]
    for number, panel in enumerate(PANELS):
        left = MARGIN + number * (PANEL_WIDTH + MARGIN)
        parts.append(_text(left, FIRST_GROUP - 26, panel.title, size=14, bold=True))
        parts += _bars(panel, read_table(page, panel.heading), left)
    foot = "Longer is faster; each group has its own scale. Random weights of these models' shapes."
    parts.append(_text(MARGIN, HEIGHT - 12, foot, size=11))
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterator[str]:
    left = MARGIN
    for product, colour in zip(PRODUCTS, COLOURS, strict=True):
        yield f'<rect x="{left}" y="46" width="14" height="14" fill="{colour}"/>'
        yield _text(left + 20, 58, product, size=13)
        left += 60 + 8 * len(product)


def _bars(panel: Panel, table: Mapping[str, Mapping[str, float]], left: int) -> Iterator[str]:
    for number, (title, row) in enumerate(GROUPS.items()):
        top = FIRST_GROUP + number * GROUP_STEP
        yield _text(left, top, title, size=13)
        rates = [table[row][column] for column in panel.columns]
        for place, (rate, colour) in enumerate(zip(rates, COLOURS, strict=True)):
            y = top + 8 + place * BAR_STEP
            width = BAR_ROOM * rate / max(rates)
            bar = f'x="{left}" y="{y}" width="{width:.1f}" height="{BAR_HEIGHT}"'
            yield f'<rect {bar} fill="{colour}"/>'
            yield _text(left + width + 6, y + 11, f"{rate:,g}", size=12, bold=place == 0)


def _text(x: float, y: float, text: str, *, size: int, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}"{weight}>{escape(text)}</text>'


def write_picture() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(RESULTS.read_text()))


if __name__ == "__main__":
    write_picture()
