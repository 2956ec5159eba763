"""Code of diagrams is shown as a picture at a click, if its kind can be drawn."""

import pytest
from playwright.sync_api import expect

from tests.playground.markdown.drawing import Drawing, show_diagram
from tests.playground.markdown.test_attacks import SCRIPT

FLOWCHART = """graph TD
    A[Start] --> B{Is it?}
    B -->|Yes| C["Great (really)"]
    B -- No --> D[(Data)] & E([Stop]);
    D -.->|later| A; E ==> F((End)) --- G
    subgraph one [The group]
        G --> H[[Sub<br/>routine]]
    end
    H --> H
    classDef big font-size:20px
    style A fill:#f9f"""
SEQUENCE = """sequenceDiagram
    participant A as Alice
    A->>B: Hello
    B-->>A: Hi
    loop Each day
        A->>A: Think
    end
    Note over A,B: Both
    alt good
        A-xB: lost
    else bad
        B-)A: later
    end"""
PIE = 'pie showData title Pets\n    "Dogs" : 386\n    "Cats" : 85.5'
# The texts of each picture, in the order in which they are drawn.
TEXTS = {
    "flowchart": (
        FLOWCHART,
        {
            *("Start", "Is it?", "Yes", "Great (really)", "No", "Data", "Stop", "later", "End"),
            *("G", "The group", "Sub", "routine"),
        },
    ),
    "sequence": (
        SEQUENCE,
        {
            *("Alice", "B", "Hello", "Hi", "loop", "[Each day]", "Think", "Both", "alt"),
            *("[good]", "lost", "[bad]", "later"),
        },
    ),
    "pie": (PIE, {"Pets", "Dogs [386]", "Cats [85.5]", "82%", "18%"}),
    "left to right": ("flowchart LR; a-->b-->c; b-->a", {"a", "b", "c"}),
    "settings before": (
        '---\ntitle: x\n---\n%%{init: {"a": 1}}%%\ngraph RL\n%% no\nA-->B',
        {"x", "A", "B"},
    ),
    "marks in texts": (
        'graph TD\nA["x; y --> z #quot;q#quot; #35;"] --> B["`md`"]',
        {'x; y --> z "q" #', "md"},
    ),
    "names with marks": ("graph TD\nfirst-node.a --> näme:::big", {"first-node.a", "näme"}),
    "a circle": ("graph TD\nA-->B-->C-->A", {"A", "B", "C"}),
}


@pytest.mark.parametrize("name", ["flowchart", "sequence", "pie", "left to right", "a circle"])
def test_a_diagram_is_drawn_with_its_texts(drawing: Drawing, name: str) -> None:
    code, texts = TEXTS[name]
    picture = show_diagram(drawing, code)
    assert set(picture.locator("tspan").all_text_contents()) == texts
    assert picture.locator("svg").get_attribute("role") == "img"
    size = "svg => [svg.width.baseVal.value, svg.getBBox().width + svg.getBBox().x]"
    width, used = picture.locator("svg").evaluate(size)
    assert 50 < used <= width < 2000


@pytest.mark.parametrize("name", ["settings before", "names with marks"])
def test_a_diagram_is_read_as_mermaid_reads_it(drawing: Drawing, name: str) -> None:
    code, texts = TEXTS[name]
    assert set(show_diagram(drawing, code).locator("tspan").all_text_contents()) == texts


def test_marks_in_texts_are_texts(drawing: Drawing) -> None:
    picture = show_diagram(drawing, TEXTS["marks in texts"][0])
    assert picture.locator("tspan").all_text_contents() == ['x; y --> z "q" #', "md"]


def test_edges_lead_down_between_boxes_that_do_not_overlap(drawing: Drawing) -> None:
    picture = show_diagram(drawing, FLOWCHART)
    boxes = picture.locator("svg .box").evaluate_all(
        "nodes => nodes.map(node => node.getBBox()).map(({x, y, width, height}) => "
        "[x, y, x + width, y + height])"
    )
    assert picture.locator(".head").count() >= 8
    assert picture.locator(".edge").count() >= 9
    for index, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[index + 1 :]:
            is_apart = (
                other[0] >= right or other[2] <= left or other[1] >= bottom or other[3] <= top
            )
            inside = left <= other[0] and other[2] <= right  # the lines of a subroutine
            assert is_apart or inside


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("gitGraph\n commit", "of the kind “gitGraph”"),
        ("", "of the kind “”"),
        ("graph TD\n\nA --> ", "line 3 cannot be read"),
        ("graph TD\nA ??? B", "line 2 cannot be read"),
        ("sequenceDiagram\nA->>B: x\nwhat", "line 3 cannot be read"),
        ('pie\n"a" : x', "line 2 cannot be read"),
        ("graph TD\n" + "\n".join(f"A{n} --> B{n}" for n in range(200)), "too large"),
        ("graph TD\nA" + " & A".join(map(str, range(120))) + " --> " + "B & C & D", "too large"),
        ("graph TD\n" + "x" * 30_000, "too large"),
    ],
)
def test_what_cannot_be_drawn_says_so(drawing: Drawing, code: str, reason: str) -> None:
    picture = show_diagram(drawing, code)
    assert reason in picture.locator("[role=status]").inner_text()
    assert picture.locator("svg").count() == 0


@pytest.mark.parametrize(
    "code",
    [
        f'graph TD\nA["<img src=x onerror={SCRIPT}>"] --> B[<script>{SCRIPT}</script>]',
        f'graph TD\nA --> B\nclick A "javascript:{SCRIPT}"\nclick B call alert()',
        "graph TD\nA --> B\nstyle A fill:url(https://evil.example/x)",
        '%%{init: {"securityLevel": "loose"}}%%\n'
        f'graph TD\nA["#lt;svg onload={SCRIPT}#gt;"]-->B',
        "graph TD\n__proto__ --> constructor --> toString\nsubgraph __proto__\nA\nend",
        f"sequenceDiagram\nlink A: x @ javascript:{SCRIPT}\nA->>B: <img src=x onerror={SCRIPT}>",
        f'pie title <svg onload={SCRIPT}>\n"<script>{SCRIPT}</script>" : 1',
    ],
)
def test_a_hostile_diagram_is_drawn_as_text(drawing: Drawing, code: str) -> None:
    picture = show_diagram(drawing, code)
    page = drawing.page
    names = set(picture.evaluate("n => [...n.querySelectorAll('*')].map(each => each.localName)"))
    assert names <= {"svg", "g", "rect", "text", "tspan", "path", "polygon", "circle", "line"}
    attributes = "n => [...n.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
    found = set(picture.evaluate(attributes))
    assert not {
        name for name in found if "href" in name or name.startswith("on") or name == "style"
    }
    assert page.evaluate("window.attacked") is None


def test_a_picture_can_be_closed_and_its_code_stays(drawing: Drawing) -> None:
    picture = show_diagram(drawing, PIE)
    assert drawing.page.locator("pre code").text_content() == PIE + "\n"
    drawing.page.get_by_role("button", name="Show as a picture").click()
    expect(picture).to_have_count(0)
