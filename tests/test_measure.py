"""`tools/house/measure.py` measures the limits of the house."""

import ast
from pathlib import Path

import pytest

from tools.house.fragments import is_fragment
from tools.house.measure import (
    FunctionNode,
    Source,
    broken_limits,
    import_cycle,
    measure_complexity,
)


def source(module: str, text: str) -> Source:
    return Source(
        module, Path(f"{module.replace('.', '/')}.py"), len(text.splitlines()), ast.parse(text)
    )


def complexity(body: str) -> int:
    function = ast.parse(f"def f():\n{body}").body[0]
    assert isinstance(function, FunctionNode)
    return measure_complexity(function)


def test_a_cycle_is_named_in_the_order_of_its_imports() -> None:
    sources = [
        source("p.a", "from p import b"),
        source("p.b", "from p.c import x"),
        source("p.c", "import p.a"),
    ]
    cycle = import_cycle([source("p", ""), *sources])
    assert cycle[0] == cycle[-1]
    assert "p.a -> p.b -> p.c -> p.a -> p.b" in " -> ".join([*cycle, *cycle[1:]])


@pytest.mark.parametrize(
    "later",
    [
        "if TYPE_CHECKING:\n    import p.a",
        "def f():\n    import p.a",
        "class C:\n    def f(self):\n        import p.a",
    ],
)
def test_imports_for_types_and_in_functions_make_no_cycle(later: str) -> None:
    assert import_cycle([source("p.a", "import p.b"), source("p.b", later)]) == []


@pytest.mark.parametrize(
    "now",
    [
        "try:\n    import p.a\nfinally:\n    pass",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import p.a",
    ],
)
def test_all_other_imports_make_a_cycle(now: str) -> None:
    assert import_cycle([source("p.a", "import p.b"), source("p.b", now)])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (" pass", 1),
        (" if a: pass\n elif b: pass\n else: pass", 3),
        (" return a and b and c or d", 4),
        (" return [b if b else c for b in a]", 3),
        (" try: pass\n except A: pass\n except B: pass\n else: pass", 3),
        (" while a:\n  assert b", 3),
        (" def g():\n  for a in b: pass", 2),
        (" match a:\n  case 1: pass\n  case 2: pass", 1),
    ],
)
def test_every_decision_counts_for_complexity(body: str, expected: int) -> None:
    assert complexity(body) == expected


def test_each_broken_limit_is_reported_with_its_place() -> None:
    long = source("p.long", "\n" * 310 + "def f():\n" + "    if a: pass\n" * 90)
    assert broken_limits([long]) == [
        "p/long.py has 401 lines, the limit is 400",
        "p/long.py:311 f has 91 lines, the limit is 90",
        "p/long.py:311 f has complexity 91, the limit is 15",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Of those that are kept.",
        "By index; `events` are all events of one request.",
        "What follows the last event.",
        "And how many there are.",
        "The newest ones; older ones are gone.",
        "A `Parser`.",
    ],
)
def test_a_docstring_without_a_main_clause_is_a_fragment(text: str) -> None:
    assert is_fragment(text)


@pytest.mark.parametrize(
    "text",
    [
        "Returns the ids that are kept.",
        "Points into the array; nothing is copied.",
        "`place` is left at the end.",
        "What does not fit becomes an InvalidRequest.",
        "Leaving it early aborts the generation.\n\nOf this nothing is counted.",
    ],
)
def test_a_docstring_with_a_main_clause_is_no_fragment(text: str) -> None:
    assert not is_fragment(text)
