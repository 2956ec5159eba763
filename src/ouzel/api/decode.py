"""Bodies to request structs; what does not fit becomes an InvalidRequest that names the field, the limit and the value.

Lenient as OpenAI is: 1.0 for an integer, numbers in strings, null for what is absent. A body is parsed once into plain
objects, so that fields we do not know can be named, and the value at fault can be shown.
"""

import logging
from typing import TypeVar

import msgspec

from ouzel.api.unsupported import NEUTRAL_VALUES, refuse_unsupported
from ouzel.api.validation_errors import invalid_request, shown
from ouzel.errors import InvalidRequest

logger = logging.getLogger(__name__)

Body = TypeVar("Body", bound=msgspec.Struct)


def decode_body(body: bytes, body_type: type[Body]) -> tuple[Body, set[str]]:
    """And the names of the fields that nobody here knows."""
    given = _parse(body)
    refuse_unsupported(given, known=body_type.__struct_encode_fields__)
    try:
        decoded = msgspec.convert(given, body_type, strict=False)
    except msgspec.ValidationError as error:
        raise invalid_request(str(error), given, body_type) from error
    return decoded, given.keys() - set(body_type.__struct_encode_fields__) - NEUTRAL_VALUES.keys()


def log_ignored(fields: set[str]) -> None:
    if fields:
        logger.info("ignored fields: %s", ", ".join(repr(name[:60]) for name in sorted(fields)[:20]))


def _parse(body: bytes) -> dict[str, object]:
    try:
        given = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise InvalidRequest("the body is nested too deeply") from error
    if not isinstance(given, dict):
        raise InvalidRequest(f"the body must be a JSON object, given {shown(given)}")
    return given
