"""Diagrams as models write them are drawn: whole, within the picture, and no text over another."""

from typing import Any  # JSON

import pytest

from tests.playground.markdown.diagram_charts import (
    GANTTS,
    JOURNEYS,
    MINDMAPS,
    QUADRANTS,
    TIMELINES,
    XYCHARTS,
)
from tests.playground.markdown.diagram_graphs import CLASSES, ENTITIES, STATES
from tests.playground.markdown.drawing import Drawing, show_diagram

CORPUS = {
    "states": STATES,
    "classes": CLASSES,
    "entities": ENTITIES,
    "mindmap": MINDMAPS,
    "gantt": GANTTS,
    "timeline": TIMELINES,
    "journey": JOURNEYS,
    "quadrants": QUADRANTS,
    "xychart": XYCHARTS,
}
GRAPHS = ("states", "classes", "entities", "mindmap")
CASES = [(kind, name) for kind, diagrams in CORPUS.items() for name in diagrams]
# Returns the places of elements that have content, from the left upper corner of the picture.
_PLACES = """(svg, selector) => {
    const { left, top } = svg.getBoundingClientRect();
    return [...svg.querySelectorAll(selector)].map((node) => {
        const box = node.getBoundingClientRect();
        const name = node.textContent;
        return [name, box.left - left, box.top - top, box.right - left, box.bottom - top];
    }).filter(([, left, , right]) => right > left);
}"""
_TOLERANCE_PX = 2.5  # characters are lower than their line


def _overlap(one: list[Any], other: list[Any], tolerance: float) -> bool:
    return all(
        one[start] + tolerance < other[end] and other[start] + tolerance < one[end]
        for start, end in ((1, 3), (2, 4))
    )


def _contains(outer: list[Any], inner: list[Any]) -> bool:
    return all(outer[at] <= inner[at] for at in (1, 2)) and all(
        outer[at] >= inner[at] for at in (3, 4)
    )


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_diagram_of_the_corpus_is_drawn(drawing: Drawing, kind: str, name: str) -> None:
    picture = show_diagram(drawing, CORPUS[kind][name])
    assert picture.locator("[role=status]").all_inner_texts() == []
    svg = picture.locator("svg")
    assert svg.get_attribute("role") == "img"
    assert svg.get_attribute("aria-label") == "A picture of the code above"
    width, height = svg.evaluate("svg => [svg.width.baseVal.value, svg.height.baseVal.value]")
    places = svg.evaluate(_PLACES, "text, rect, circle, polygon")
    assert len(places) > 3
    outside = [
        place
        for place in places
        if place[1] < 0 or place[2] < 0 or place[3] > width or place[4] > height
    ]
    assert outside == []
    texts = svg.evaluate(_PLACES, "text")
    covered = [
        (one[0], other[0])
        for index, one in enumerate(texts)
        for other in texts[index + 1 :]
        if _overlap(one, other, _TOLERANCE_PX)
    ]
    assert covered == []


@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if case[0] in GRAPHS])
def test_boxes_of_a_graph_stand_apart(drawing: Drawing, kind: str, name: str) -> None:
    svg = show_diagram(drawing, CORPUS[kind][name]).locator("svg")
    boxes = svg.evaluate(_PLACES, ".box, .outer, .note")
    meeting = [
        (one, other)
        for index, one in enumerate(boxes)
        for other in boxes[index + 1 :]
        if _overlap(one, other, 0) and not _contains(one, other)
    ]
    assert len(boxes) > 1
    assert meeting == []
