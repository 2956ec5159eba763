"""Holds JSON schemas for all keywords; the grammar honours each in full or refuses it by name."""

from tests.grammar.schemas import (
    arrays,
    combinations,
    generators,
    numbers,
    objects,
    one_of,
    property_rules,
    pydantic_models,
    references,
    refused,
    refused_content,
    strings,
    values,
)
from tests.grammar.schemas.cases import Case, Refused

CASES: list[Case] = [
    *(*values.CASES, *numbers.CASES, *strings.CASES, *arrays.CASES, *objects.CASES),
    *property_rules.CASES,
    *(*combinations.CASES, *one_of.CASES, *references.CASES),
    *(*pydantic_models.CASES, *generators.CASES),
]
REFUSED: list[Refused] = [*refused.CASES, *refused_content.CASES]
