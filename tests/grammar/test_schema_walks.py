"""Every schema of the set gives valid instances only, or is refused by name."""

import json

import numpy as np
import pytest

from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import Session
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.keywords import ANNOTATIONS, HONOURED
from ouzel.grammar.schema.keywords import REFUSED as REFUSED_KEYWORDS
from ouzel.grammar.schema.reader import FORMATS_THAT_SAY_NOTHING, INTEGER_FORMATS
from ouzel.grammar.schema.string_formats import PATTERNS
from tests.grammar.runs import accepts, random_walk, started
from tests.grammar.schemas import CASES, REFUSED
from tests.grammar.schemas.cases import Case, Refused
from tests.grammar.validity import exactly, validator_of

SEEDS, MORE_SEEDS = range(2), range(2, 6)
KNOWN_FORMATS = {*PATTERNS, *INTEGER_FORMATS, *FORMATS_THAT_SAY_NOTHING}


def in_each_mode(cases: list[Case] | list[Refused]) -> pytest.MarkDecorator:
    each = [(case, strict) for case in cases for strict in case.modes]
    ids = [f"{case.name}{', strict' if strict else ''}" for case, strict in each]
    return pytest.mark.parametrize(("case", "strict"), each, ids=ids)


def session_of(schema: object, *, strict: bool) -> Session:
    return started({"type": "json_schema", "json_schema": schema}, strict=strict)


def test_the_set_is_large_and_its_names_differ() -> None:
    names = [case.name for case in CASES] + [case.name for case in REFUSED]
    assert len(CASES) >= 200
    assert len(names) >= 300
    assert len(set(names)) == len(names)


def test_the_set_covers_every_keyword() -> None:
    spelled = {
        name: json.dumps([case.schema for case in cases])
        for name, cases in (("good", CASES), ("bad", REFUSED))
    }

    assert {
        keyword
        for keyword in HONOURED | ANNOTATIONS - {"id"}
        if f'"{keyword}":' not in spelled["good"]
    } == set()
    assert {
        keyword for keyword in REFUSED_KEYWORDS if f'"{keyword}":' not in spelled["bad"]
    } == set()
    assert {name for name in KNOWN_FORMATS if f'"format": "{name}"' not in spelled["good"]} == set()


@in_each_mode(CASES)
@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(MORE_SEEDS, marks=pytest.mark.release("more random walks"))]
)
def test_random_walks_give_valid_instances(case: Case, strict: bool, seeds: range) -> None:
    session, validator = session_of(case.schema, strict=strict), validator_of(case.schema)
    walks = [random_walk(session, np.random.Generator(np.random.PCG64(seed))) for seed in seeds]
    finished = [text for text in walks if text is not None]
    assert finished
    for text in finished:
        validator.validate(exactly(text))


@in_each_mode(CASES)
def test_instances_are_accepted_and_rejected(case: Case, strict: bool) -> None:
    session = session_of(case.schema, strict=strict)
    assert [text for text in case.accepts if not accepts(session, text)] == []
    assert [text for text in (*case.rejects, *case.narrower) if accepts(session, text)] == []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_a_case_says_is_what_its_schema_says(case: Case) -> None:
    validator = validator_of(case.schema)
    assert [
        text for text in (*case.accepts, *case.narrower) if not validator.is_valid(exactly(text))
    ] == []
    assert [text for text in case.rejects if validator.is_valid(exactly(text))] == []


@in_each_mode(REFUSED)
def test_what_cannot_be_honoured_is_refused_by_name(case: Refused, strict: bool) -> None:
    with pytest.raises((GrammarError, GrammarRefused), match=case.message):
        session_of(case.schema, strict=strict)
