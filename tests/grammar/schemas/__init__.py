"""JSON schemas over all keywords, written for these tests: honoured in full, or refused by name."""

from tests.grammar.schemas import (
    arrays,
    combinations,
    generators,
    numbers,
    objects,
    references,
    refused,
    strings,
    values,
)
from tests.grammar.schemas.cases import Case, Refused

CASES: list[Case] = [
    *(*values.CASES, *numbers.CASES, *strings.CASES, *arrays.CASES, *objects.CASES),
    *(*combinations.CASES, *references.CASES, *generators.CASES),
]
REFUSED: list[Refused] = refused.CASES
