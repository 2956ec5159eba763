"""Validates JSON texts against schemas, with exact numbers and with all formats."""

import json
from decimal import Decimal, getcontext
from functools import lru_cache, partial
from typing import Any  # JSON of any shape

import jsonschema
import jsonschema_rs
from jsonschema.protocols import Validator

getcontext().prec = 2000  # digits, for remainders of numbers as long as an answer


def exactly(text: str) -> Any:
    """Parses JSON with decimals: in binary fractions, 0.3 is no multiple of 0.1."""
    return json.loads(text, parse_float=_number)


def _number(text: str) -> int | Decimal:
    value = Decimal(text)
    return int(value) if value.adjusted() < 1000 and value == value.to_integral_value() else value


def make_validator(schema: object) -> Validator:
    exact = exactly(json.dumps(schema))
    validator = jsonschema.validators.validator_for(exact, jsonschema.Draft202012Validator)
    return validator(exact, format_checker=_formats())


@lru_cache
def _formats() -> jsonschema.FormatChecker:
    """Returns a checker with OpenAPI's formats and formats for which jsonschema lacks packages."""
    checker = jsonschema.FormatChecker()
    checker.checkers = dict(jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers)
    for name in ("duration", "email", "hostname", "uri"):
        checker.checks(name)(
            jsonschema_rs.validator_for({"format": name}, validate_formats=True).is_valid
        )
    for name, limit in (("int32", 2**31), ("int64", 2**63)):
        checker.checks(name)(partial(_is_within, limit))
    return checker


def _is_within(limit: int, value: object) -> bool:
    return not isinstance(value, int) or -limit <= value < limit
