"""A hostile diagram is drawn as text; a large or unreadable one says so. Its code stays."""

import pytest
from playwright.sync_api import expect

from tests.playground.markdown.drawing import Drawing, show_diagram
from tests.playground.markdown.test_attacks import SCRIPT

_IMAGE = f"<img src=x onerror={SCRIPT}>"
_SVG = f"<svg onload={SCRIPT}>"
_LINK = f"javascript:{SCRIPT}"
HOSTILE = {
    "states": f"""stateDiagram-v2
    state "{_IMAGE}" as a
    [*] --> a : {_SVG}
    a --> __proto__
    __proto__ --> constructor
    state toString {{
        [*] --> hasOwnProperty
    }}
    note right of a : #lt;script#gt;{SCRIPT}
    click a "{_LINK}"
    style a fill:url(https://evil.example/x)""",
    "classes": f"""classDiagram
    class A["{_IMAGE}"]
    class constructor {{
        +{_SVG}
    }}
    A "{_SVG}" --> "{_IMAGE}" __proto__ : {_SVG}
    note for A "{_IMAGE}"
    link A "{_LINK}"
    callback A "{SCRIPT}"
    click A href "{_LINK}" """,
    "entities": f"""erDiagram
    "{_IMAGE}" ||--o{{ __proto__ : "{_SVG}"
    constructor {{
        string x PK "{_SVG}"
    }}
    style constructor fill:url(https://evil.example/x)""",
    "mindmap": f"mindmap\n  root(({_IMAGE}))\n    {_SVG}\n    ::icon({_LINK})\n    __proto__",
    "gantt": f"gantt\ntitle {_SVG}\nsection {_IMAGE}\n{_SVG} :__proto__, 2026-01-01, 1d\n"
    f"constructor :after __proto__, 1d\nclick __proto__ href {_LINK}",
    "timeline": f"timeline\ntitle {_IMAGE}\nsection {_SVG}\n__proto__ : {_IMAGE}",
    "journey": f"journey\ntitle {_IMAGE}\nsection {_SVG}\n{_SVG}: 5: {_IMAGE}",
    "quadrants": f"quadrantChart\ntitle {_SVG}\nx-axis {_IMAGE} --> {_SVG}\n{_SVG}: [0.5, 0.5]",
    "xychart": f'xychart\ntitle {_SVG}\nx-axis "{_IMAGE}" [__proto__, "{_SVG}"]\n'
    f'bar "{_IMAGE}" [1, 2]',
    "a title": f"---\ntitle: {_IMAGE}\n---\ngraph TD\nA --> B",
}
_NAMES = {"svg", "g", "rect", "text", "tspan", "path", "polygon", "polyline", "circle", "line"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_diagram_is_drawn_as_text(drawing: Drawing, name: str) -> None:
    picture = show_diagram(drawing, HOSTILE[name])
    expect(picture.locator("svg")).to_have_count(1)
    elements = "node => [...node.querySelectorAll('*')].map(each => each.localName)"
    assert set(picture.evaluate(elements)) <= _NAMES
    attributes = "n => [...n.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
    found = set(picture.evaluate(attributes))
    assert not {each for each in found if "href" in each or each.startswith("on")}
    assert not {"style", "id", "filter"} & found
    assert drawing.page.evaluate("window.attacked") is None


def _lines(count: int, line: str) -> str:
    return "\n".join(line.replace("N", str(number)) for number in range(count))


UNDRAWN = [
    ("stateDiagram-v2", "line 1 cannot be read"),
    ("stateDiagram-v2\nA --> B\nA ->> B", "line 3 cannot be read"),
    ("stateDiagram-v2\nstate A <<history>>", "line 2 cannot be read"),
    ("stateDiagram-v2\nA --> B\n}", "line 3 cannot be read"),
    ("stateDiagram-v2\nstate A {\nB --> C\nA --> B\n}", "line 4 cannot be read"),
    ("stateDiagram-v2\n" + _lines(160, "A --> SN"), "too large"),
    ("stateDiagram-v2\n" + _lines(310, "A --> B"), "too large"),
    ("stateDiagram-v2\n" + _lines(9, "state AN {"), "too large"),
    ("classDiagram", "line 1 cannot be read"),
    ("classDiagram\nA <|-- B\nA => B", "line 3 cannot be read"),
    ("classDiagram\nclass A {\n+x\n}\n}", "line 5 cannot be read"),
    ("classDiagram\n" + _lines(110, "class CN"), "too large"),
    ("classDiagram\nclass A {\n" + _lines(700, "+int xN"), "too large"),
    ("erDiagram\nA ||--o{ B : x\nA ||==o{ B : y", "line 3 cannot be read"),
    ("erDiagram\nA {\nstring name NOT NULL\n}", "line 3 cannot be read"),
    ("erDiagram\n" + _lines(110, "EN"), "too large"),
    ("mindmap", "line 1 cannot be read"),
    ("mindmap\n  A\n    B\n  C", "line 4 cannot be read"),
    ("mindmap\n A\n" + _lines(210, "  BN"), "too large"),
    ("mindmap\n" + "\n".join(" " * depth + "x" for depth in range(1, 20)), "too large"),
    ("gantt\ntitle nothing", "line 1 cannot be read"),
    ("gantt\nA :a, 2026-01-01, 1d\nB :after missing, 1d", "line 3 cannot be read"),
    ("gantt\nA :a, after b, 1d\nB :b, after a, 1d", "line 2 cannot be read"),
    ("gantt\nA :a, yesterday, 1d", "line 2 cannot be read"),
    ("gantt\nA :a, 2026-01-01, 1 fortnight", "line 2 cannot be read"),
    (
        "gantt\nexcludes monday tuesday wednesday thursday friday weekends\nA :2026-01-01, 1d",
        "too large",
    ),
    ("gantt\nexcludes 2020-01-01\nA :2026-01-01, 90000y", "too large"),
    ("gantt\n" + _lines(160, "T :2026-01-01, 1d"), "too large"),
    ("timeline\n : nothing before", "line 2 cannot be read"),
    ("timeline\n" + _lines(110, "N : x"), "too large"),
    ("journey\nTask: high: Me", "line 2 cannot be read"),
    ("journey\n" + _lines(110, "T: 3"), "too large"),
    ("quadrantChart\nA: [0.5, 7]", "line 2 cannot be read"),
    ("quadrantChart\n" + _lines(70, "A: [0.5, 0.5]"), "too large"),
    ("xychart\nbar [1, x]", "line 2 cannot be read"),
    ("xychart\ny-axis 5 --> 1\nbar [1]", "line 2 cannot be read"),
    ("xychart\nbar [" + "1," * 300 + "1]", "too large"),
    ("C4Context\nPerson(a, b)", "of the kind “C4Context”"),
    ("constructor\nx", "of the kind “constructor”"),
    ("__proto__\nx", "of the kind “__proto__”"),
]


@pytest.mark.parametrize(("code", "reason"), UNDRAWN)
def test_a_diagram_that_is_not_drawn_says_so(drawing: Drawing, code: str, reason: str) -> None:
    picture = show_diagram(drawing, code)
    assert reason in picture.locator("[role=status]").inner_text()
    assert picture.locator("svg").count() == 0
    assert drawing.page.locator("pre code").text_content() == code + "\n"


# Patterns that could go back and forth over a text for minutes do not: these end, drawn or not.
LONG = [
    "stateDiagram-v2\nstate A" + " " * 19_000 + "x y",
    "stateDiagram-v2\n" + "a-" * 9_000 + " --",
    "stateDiagram-v2\nA --> B : " + "x --> " * 3_000,
    "classDiagram\nA~" + "a~" * 9_000,
    "classDiagram\nclass A {\n" + "x(" * 9_000 + "\n}",
    'classDiagram\nA "' + '" "' * 6_000 + " --> B",
    "erDiagram\nA {\n" + "x(" * 9_000 + "\n}",
    'erDiagram\n"' + '""' * 9_000,
    "mindmap\n root\n  " + "((" * 9_000,
    "mindmap\n root\n  " + "*" * 19_000,
    "gantt\nA : " + "1d" * 9_000,
    "gantt\ndateFormat " + "Y" * 19_000 + "\nA :2026-01-01, 1d",
    "gantt\nA :0001-01-01, 999999y\nB :9999-01-01, 1ms",
    "gantt\ntickInterval 1millisecond\nA :2026-01-01, 900y",
    "timeline\n" + "a :" * 6_000,
    "journey\n" + "a:" * 9_000,
    "quadrantChart\nx-axis " + "-->" * 6_000 + "\n" + "a:[" * 2_000,
    "xychart\nbar " + '"' * 19_000,
    "xychart\nbar [999999999999999, -999999999999999, 0.000000000000001]",
]


@pytest.mark.parametrize("code", LONG, ids=lambda code: code[:24])
def test_a_long_text_ends(drawing: Drawing, code: str) -> None:
    picture = show_diagram(drawing, code)
    expect(picture.locator("svg, [role=status]")).to_have_count(1)
