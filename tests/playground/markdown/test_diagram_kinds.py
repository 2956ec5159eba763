"""Each kind of diagram shows the parts that its code names, where they belong."""

import re

import pytest
from playwright.sync_api import FloatRect, Locator, expect

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


def _texts(picture: Locator) -> set[str]:
    return set(picture.locator("tspan").all_text_contents())


def _middle(picture: Locator, text: str) -> tuple[float, float]:
    """Returns the middle of the only text of these words."""
    found = picture.locator("text").filter(has_text=re.compile(f"^{re.escape(text)}$"))
    x, y = found.evaluate(
        "node => { const box = node.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; }"
    )
    return x, y


def _box(node: Locator) -> FloatRect:
    box = node.bounding_box()
    assert box is not None
    return box


def test_states_have_starts_ends_and_notes(drawing: Drawing) -> None:
    picture = show_diagram(drawing, STATES["an order"])
    assert _texts(picture) == {
        *("Pending", "Paid", "Cancelled", "Shipped", "Delivered"),
        *("payment received", "timeout (30 min)", "parcel handed over"),
        *("The invoice is sent", "by e-mail."),
    }
    assert picture.locator("path.edge").count() == 7
    assert picture.locator("circle.head").count() == 2  # the start, and the dot of the end
    assert picture.locator("circle.hollow-head").count() == 1
    assert _middle(picture, "Pending")[1] < _middle(picture, "Shipped")[1]


def test_a_direction_turns_the_states(drawing: Drawing) -> None:
    picture = show_diagram(drawing, STATES["a player"])
    assert _middle(picture, "Stopped")[0] < _middle(picture, "Playing")[0]


def test_a_state_stands_in_the_state_that_names_it(drawing: Drawing) -> None:
    picture = show_diagram(drawing, STATES["into states and out of them"])
    machine, hot = (_box(picture.locator(".outer").nth(number)) for number in (0, 1))
    low, alarm = (_box(picture.locator("text", has_text=text)) for text in ("Low", "Alarm"))
    assert machine["y"] < hot["y"] < low["y"] < hot["y"] + hot["height"]
    assert hot["y"] + hot["height"] < machine["y"] + machine["height"] < alarm["y"]


def test_regions_stand_beside_each_other(drawing: Drawing) -> None:
    picture = show_diagram(drawing, STATES["regions"])
    assert picture.locator(".divider").count() == 1
    assert _middle(picture, "Light")[0] < _middle(picture, "Loud")[0]


def test_descriptions_of_a_state_stand_below_its_name(drawing: Drawing) -> None:
    picture = show_diagram(drawing, STATES["long names"])
    name = _middle(picture, "Waiting for the customer's answer")
    details = _middle(picture, "entry / send a reminderexit / stop the clock")
    assert name[0] == pytest.approx(details[0], abs=1)
    assert name[1] < details[1]
    assert {"Closed", "entry / send a reminder", "exit / stop the clock"} <= _texts(picture)


def test_classes_have_members_and_signs(drawing: Drawing) -> None:
    picture = show_diagram(drawing, CLASSES["animals"])
    texts = _texts(picture)
    assert {"«abstract»", "+makeSound() : void", "#int age", "0..*", "1", "belongs to"} <= texts
    assert picture.locator(".abstract").all_text_contents() == ["+makeSound() : void"]
    assert picture.locator("polygon.hollow-head").count() == 2
    assert picture.locator("polygon.head").count() == 1


def test_types_of_classes_have_brackets(drawing: Drawing) -> None:
    texts = _texts(show_diagram(drawing, CLASSES["generics and kinds"]))
    assert {"Repository<T>", "+findAll() : Map<String, List<T>>", "«enumeration»"} <= texts
    assert {"RED", "Legacy store", "+save(T entity) : void"} <= texts


def test_classes_stand_in_their_namespace(drawing: Drawing) -> None:
    picture = show_diagram(drawing, CLASSES["namespaces"])
    assert picture.locator(".group").count() == 2
    assert {"Domain", "Storage", "parent"} <= _texts(picture)


def test_entities_are_tables(drawing: Drawing) -> None:
    picture = show_diagram(drawing, ENTITIES["a blog"])
    keys = picture.locator("text.keys").all_text_contents()
    assert keys == ["PK", "UK", "PK, FK", "PK, FK"]
    assert {"varchar(255)", "email", "UTC", "answers", "writes"} <= _texts(picture)
    rows = [_middle(picture, word)[1] for word in ("varchar(255)", "email", "UK")]
    assert max(rows) - min(rows) < 1


def test_an_entity_has_its_other_name(drawing: Drawing) -> None:
    texts = _texts(show_diagram(drawing, ENTITIES["names"]))
    assert {"Person", "Customer Account", "Old orders"} <= texts
    assert not {"p", "a"} & texts


def test_branches_of_a_mind_map_are_on_both_sides(drawing: Drawing) -> None:
    picture = show_diagram(drawing, MINDMAPS["learning"])
    root = _middle(picture, "Machine Learning")[0]
    assert _middle(picture, "Decision trees")[0] > _middle(picture, "Supervised")[0] > root
    assert _middle(picture, "Q-learning")[0] < _middle(picture, "Reinforcement")[0] < root
    assert picture.locator("path.branch").count() == 11


def test_icons_and_classes_of_a_mind_map_are_left_out(drawing: Drawing) -> None:
    texts = _texts(show_diagram(drawing, MINDMAPS["shapes"]))
    assert texts == {
        *("Project", "People and roles", "Lead", "Developers", "What we want", "Quality"),
        *("Speed", "Danger", "Money", "and time", "Hosting"),
    }


def test_a_task_begins_where_its_code_says(drawing: Drawing) -> None:
    picture = show_diagram(drawing, GANTTS["no ids"])
    boxes = picture.locator("rect.bar").evaluate_all(
        "bars => bars.map(bar => [bar.x.baseVal.value, bar.width.baseVal.value])"
    )
    days = [start * 362 / 620 for start, _ in boxes]  # the chart has 620 px for 362 days
    assert days == pytest.approx([0, 90, 212], abs=0.1)
    assert [width * 362 / 620 for _, width in boxes] == pytest.approx([90, 120, 150], abs=0.1)


def test_weekends_make_a_task_longer(drawing: Drawing) -> None:
    code = "gantt\n{}section A\nOne :2026-01-09, 2d\nTwo :2026-01-09, 2026-01-19"
    widths = []
    for excluded in ("", "excludes weekends\n"):
        picture = show_diagram(drawing, code.format(excluded))
        bar = picture.locator("rect.bar").first
        widths.append(bar.evaluate("bar => bar.width.baseVal.value * 10 / 620"))
    assert widths == pytest.approx([2, 4], abs=0.1)


def test_loose_forms_of_tasks_are_read(drawing: Drawing) -> None:
    picture = show_diagram(drawing, GANTTS["loose forms"])
    assert {"A: first", "weekend work", "Setup", "Ready", "Second milestone"} <= _texts(picture)
    assert picture.locator("polygon.milestone").count() == 2
    assert picture.locator("rect.done").count() == 1


def test_events_stand_beside_their_period(drawing: Drawing) -> None:
    picture = show_diagram(drawing, TIMELINES["the web"])
    assert {"1989", "Proposal at CERN", "PHP", "History of the web"} <= _texts(picture)
    assert _middle(picture, "1995")[0] < _middle(picture, "PHP")[0]
    assert _middle(picture, "1995")[1] < _middle(picture, "PHP")[1] < _middle(picture, "2008")[1]


def test_colons_without_blank_stay_in_events(drawing: Drawing) -> None:
    texts = _texts(show_diagram(drawing, TIMELINES["colons"]))
    assert {"Week 1", "Read https://example.org/a:b"} <= texts
    assert {"Meeting at 10:30 with everybody", "2026-04-06 (Phase 1)"} <= texts


def test_a_journey_shows_scores(drawing: Drawing) -> None:
    picture = show_diagram(drawing, JOURNEYS["shopping"])
    places = picture.locator("circle.point").evaluate_all(
        "dots => dots.map(dot => +dot.cx.baseVal.value)"
    )
    assert places[0] == places[3] > places[1] > places[2]
    assert {"Customer, Friend", "Pay", "Buying a ticket"} <= _texts(picture)


def test_points_stand_in_their_quadrant(drawing: Drawing) -> None:
    picture = show_diagram(drawing, QUADRANTS["priorities"])
    assert picture.locator("circle.point").count() == 5
    assert _middle(picture, "Rewrite")[0] > _middle(picture, "Login page")[0]
    assert _middle(picture, "Logo")[1] > _middle(picture, "Login page")[1]
    assert {"Quick wins", "Low effort", "High value"} <= _texts(picture)


def test_bars_are_as_high_as_their_numbers(drawing: Drawing) -> None:
    picture = show_diagram(drawing, XYCHARTS["revenue"])
    heights = picture.locator("rect.bar").evaluate_all(
        "bars => bars.map(bar => bar.height.baseVal.value)"
    )
    assert [height * 120 / 300 for height in heights] == pytest.approx(
        [52, 61, 75, 82, 95, 105], abs=0.1
    )
    assert picture.locator("polyline.curve").count() == 1
    assert {"Revenue (k€)", "jan", "Revenue of 2025"} <= _texts(picture)


def test_an_axis_has_the_range_of_its_code(drawing: Drawing) -> None:
    picture = show_diagram(drawing, "xychart-beta\ny-axis 4000 --> 12000\nbar [5000, 10000]")
    assert _texts(picture) == {"4,000", "6,000", "8,000", "10,000", "12,000"}


def test_each_kind_is_loaded_with_its_first_diagram(drawing: Drawing) -> None:
    loaded: list[str] = []
    drawing.page.on("request", lambda request: loaded.append(request.url.rsplit("/", 1)[1]))
    drawing.page.reload()
    picture = show_diagram(drawing, JOURNEYS["nobody"])
    expect(picture.locator("svg")).to_have_count(1)
    assert {"diagram_view.js", "journey.js", "diagrams.css"} <= set(loaded)
    assert not {"flowchart.js", "gantt.js", "layers.js", "mindmap.js"} & set(loaded)
