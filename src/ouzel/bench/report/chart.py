"""Draws charts as SVG; the style sheet of the page has the colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ouzel.bench.report.axis import Axis, linear_axis, logarithmic_axis, tick_text

MAX_SERIES = 9  # number of colours in the style sheet
_WIDTH, _HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 12, 46
_MAX_DOTS = 1500
_SPREAD = 50.0  # an axis is logarithmic if largest / smallest value is above this ratio


class Mark(Enum):
    LINE = "line"
    POINTS = "points"  # a line with its points
    DOTS = "dots"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Series:
    label: str
    xs: Sequence[float]
    ys: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with up to MAX_SERIES series.

    With `may_be_logarithmic` the horizontal axis is logarithmic if its values differ widely.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    mark: Mark
    may_be_logarithmic: bool = False

    def svg(self) -> str:
        root = Element(
            "svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria-label": self.title}
        )
        x_axis, y_axis = self._axes()
        _draw_grid(root, x_axis, y_axis)
        _text(root, self.x_label, x=(_LEFT + _WIDTH - _RIGHT) / 2, y=_HEIGHT - 8, anchor="middle")
        label = _text(root, self.y_label, x=0, y=0, anchor="middle")
        label.set("transform", f"translate(14 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)")
        for number, series in enumerate(self.series):
            group = SubElement(root, "g", {"class": f"s{number}"})
            _draw(group, series, self.mark, x_axis, y_axis)
        return ElementTree.tostring(root, encoding="unicode")

    def _axes(self) -> tuple[Axis, Axis]:
        xs = [x for series in self.series for x in series.xs]
        ys = [y for series in self.series for y in series.ys]
        positive = [x for x in xs if x > 0]
        make_axis = linear_axis
        if self.may_be_logarithmic and positive and max(positive) / min(positive) > _SPREAD:
            make_axis = logarithmic_axis
        x_axis = make_axis(xs, start=_LEFT, end=_WIDTH - _RIGHT)
        y_axis = linear_axis(ys, start=_HEIGHT - _BOTTOM, end=_TOP)
        return x_axis, y_axis


def _draw_grid(root: Element, x_axis: Axis, y_axis: Axis) -> None:
    for tick in y_axis.ticks():
        y = y_axis.at(tick)
        SubElement(root, "path", {"class": "grid", "d": f"M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"})
        _text(root, tick_text(tick), x=_LEFT - 6, y=y + 4, anchor="end")
    for tick in x_axis.ticks():
        x = x_axis.at(tick)
        SubElement(root, "path", {"class": "grid", "d": f"M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"})
        _text(root, tick_text(tick), x=x, y=_HEIGHT - _BOTTOM + 16, anchor="middle")


def _text(root: Element, text: str, *, x: float, y: float, anchor: str) -> Element:
    element = SubElement(root, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor})
    element.text = text
    return element


def _draw(group: Element, series: Series, mark: Mark, x_axis: Axis, y_axis: Axis) -> None:
    points = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(series.xs, series.ys, strict=True)]
    if not points:
        return
    match mark:
        case Mark.LINE:
            _draw_line(group, points)
        case Mark.POINTS:
            _draw_line(group, points)
            _draw_dots(group, points)
        case Mark.DOTS:
            _draw_dots(group, points[:: len(points) // _MAX_DOTS + 1])
        case Mark.STEPS:
            _draw_steps(group, points)
        case _:
            assert_never(mark)


def _draw_line(group: Element, points: Sequence[tuple[float, float]]) -> None:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    SubElement(group, "path", {"class": "line", "d": path})


def _draw_steps(group: Element, points: Sequence[tuple[float, float]]) -> None:
    """Draws a horizontal line at each value up to the next value."""
    x, y = points[0]
    path = f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
    SubElement(group, "path", {"class": "line", "d": path})


def _draw_dots(group: Element, points: Sequence[tuple[float, float]]) -> None:
    for x, y in points:
        SubElement(group, "circle", {"class": "dot", "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3"})
