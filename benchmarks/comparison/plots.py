"""Line charts as SVG text: a line for each contender, the horizontal axis by powers of two."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log2

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 180, 40, 40
COLOURS = ("#0b6e4f", "#c1440e", "#3d5a99", "#8a6d00", "#7b3f8c", "#555555")
NUM_TICKS = 5

Line = Mapping[int, float]  # x -> y


def line_chart(title: str, x_label: str, y_label: str, lines: Mapping[str, Line]) -> str:
    """Returns the SVG document. Each y is at least 0; a line without points is named only."""
    xs = sorted({x for line in lines.values() for x in line})
    top = nice_top(max((y for line in lines.values() for y in line.values()), default=1.0))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, TOP - 18, title, size=14),
        _text(LEFT, HEIGHT - 6, x_label),
        _text(4, TOP - 4, y_label, size=10),
        *_axes(xs, top),
    ]
    for index, (name, line) in enumerate(lines.items()):
        parts += _line(name, line, index, xs, top)
    return "\n".join([*parts, "</svg>", ""])


def nice_top(highest: float) -> float:
    """Returns the end of the vertical axis: 1, 2 or 5 times a power of ten, at least as much."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** (len(str(int(highest))) - 1) if highest >= 1 else 0.1
    return next(step * power for step in (1, 2, 5, 10) if step * power >= highest)


def _x(value: int, xs: Sequence[int]) -> float:
    room = WIDTH - LEFT - RIGHT
    span = log2(xs[-1] / xs[0]) if len(xs) > 1 else 1.0
    return LEFT + room * log2(value / xs[0]) / span


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def _axes(xs: Sequence[int], top: float) -> list[str]:
    parts = []
    for tick in range(NUM_TICKS + 1):
        value = top * tick / NUM_TICKS
        y = _y(value, top)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:g}", anchor="end"))
    parts += [_text(_x(x, xs), HEIGHT - BOTTOM + 16, str(x), anchor="middle") for x in xs]
    return parts


def _line(name: str, line: Line, index: int, xs: Sequence[int], top: float) -> list[str]:
    colour = COLOURS[index % len(COLOURS)]
    points = [(_x(x, xs), _y(y, top)) for x, y in sorted(line.items())]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    label_y = TOP + 18 * index + 8
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points),
        f'<path d="M{WIDTH - RIGHT + 12} {label_y - 4}h14" stroke="{colour}" stroke-width="2"/>',
        _text(WIDTH - RIGHT + 32, label_y, name),
    ]


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
