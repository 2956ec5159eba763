"""Every schema of the set generates valid instances only, or is refused by name."""

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
from tests.grammar.validity import exactly, make_validator

SEEDS, SEEDS_OF_A_RELEASE = range(2), range(6)
KNOWN_FORMATS = {*PATTERNS, *INTEGER_FORMATS, *FORMATS_THAT_SAY_NOTHING}


def start_session(schema: object, *, strict: bool) -> Session:
    return started({"type": "json_schema", "json_schema": schema}, strict=strict)


def test_the_set_is_large_and_its_names_differ() -> None:
    names = [case.name for case in CASES] + [case.name for case in REFUSED]
    assert len(CASES) >= 200
    assert len(names) >= 300
    assert len(set(names)) == len(names)


def test_the_set_covers_every_keyword() -> None:
    spell_marks = {
        name: json.dumps([case.schema for case in cases])
        for name, cases in (("good", CASES), ("bad", REFUSED))
    }

    assert {
        keyword
        for keyword in HONOURED | ANNOTATIONS - {"id"}
        if f'"{keyword}":' not in spell_marks["good"]
    } == set()
    assert {
        keyword for keyword in REFUSED_KEYWORDS if f'"{keyword}":' not in spell_marks["bad"]
    } == set()
    assert {
        name for name in KNOWN_FORMATS if f'"format": "{name}"' not in spell_marks["good"]
    } == set()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_schema_gives_valid_instances_and_accepts_its_own(
    case: Case, before_release: bool
) -> None:
    """The test walks at random through the grammar and runs the case's own texts, in each mode.

    Before a release it walks three times as often.
    """
    validator = make_validator(case.schema)
    valid = (*case.accepts, *case.narrower)
    assert [text for text in valid if not validator.is_valid(exactly(text))] == []
    assert [text for text in case.rejects if validator.is_valid(exactly(text))] == []

    for strict in case.modes:
        session = start_session(case.schema, strict=strict)
        mode = f"{strict=}"
        assert [text for text in case.accepts if not accepts(session, text)] == [], mode
        assert [text for text in (*case.rejects, *case.narrower) if accepts(session, text)] == [], (
            mode
        )
        seeds = SEEDS_OF_A_RELEASE if before_release else SEEDS
        walks = [random_walk(session, np.random.Generator(np.random.PCG64(seed))) for seed in seeds]
        finished = [text for text in walks if text is not None]
        assert finished, mode
        for text in finished:
            validator.validate(exactly(text))


@pytest.mark.parametrize("case", REFUSED, ids=[case.name for case in REFUSED])
def test_unsupported_schemas_are_refused_by_name(case: Refused) -> None:
    for strict in case.modes:
        with pytest.raises((GrammarError, GrammarRefused), match=case.message):
            start_session(case.schema, strict=strict)
