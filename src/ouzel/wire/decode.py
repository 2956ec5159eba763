"""Decodes JSON bodies into request structs. Errors are InvalidRequest with field, limit and value.

The rules are OpenAI's: null means that the field is absent; of a name given twice, the last value
counts. Numbers are lenient (`lenient_numbers`), all else is strict. A body is parsed once into
plain objects, so that log lines can name unknown fields and errors can show the value.
"""

import json
import logging
import math
from typing import TypeVar

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.wire.aliases import rename_aliases, restore_client_name
from ouzel.wire.hints import HINTS, log_hints
from ouzel.wire.lenient_numbers import convert_numbers
from ouzel.wire.unknown_fields import unknown_fields
from ouzel.wire.unsupported import NEUTRAL_VALUES, refuse_unsupported
from ouzel.wire.validation_errors import (
    UnreadableValue,
    find_path,
    format_path,
    invalid_request,
    show_value,
)
from ouzel.wire.value_limits import MAX_SHORT_BYTES, check_num_values

# exceptions of a parser for a body that is not JSON
_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# A longer body is not parsed a second time for a better error: parsing holds the GIL.
_MAX_REPARSED_BYTES = 2**20

logger = logging.getLogger(__name__)

Body = TypeVar("Body", bound=msgspec.Struct)
JsonObject = dict[str, object]

# RFC 8259, section 8.1: a parser may ignore it. Some clients on Windows send it.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def decode_body(body: bytes, body_type: type[Body]) -> Body:
    """Decodes a body, and logs the names of its unknown fields."""
    return decode_object(parse_object(body), body_type)


def decode_object(fields: JsonObject, body_type: type[Body]) -> Body:
    """Decodes a parsed body, or a parsed object inside a body."""
    own_fields = body_type.__struct_encode_fields__
    named = rename_aliases(fields, own_fields)
    refuse_unsupported(named, own_fields=own_fields)
    try:
        body = _convert(named, body_type)
    except InvalidRequest as error:
        raise restore_client_name(error, lambda: fields) from error.__cause__
    log_hints(named, own_fields)
    log_ignored(unknown_fields(named, body) - NEUTRAL_VALUES.keys() - HINTS.keys())
    return body


def _convert(fields: JsonObject, body_type: type[Body]) -> Body:
    try:
        return msgspec.convert(fields, body_type)
    except msgspec.ValidationError:
        pass  # the common case: no number needs conversion
    plain = convert_numbers(fields, body_type)
    assert isinstance(plain, dict)
    try:
        return msgspec.convert(plain, body_type)
    except msgspec.ValidationError as error:
        raise invalid_request(str(error), plain, body_type) from error


def log_ignored(fields: set[str]) -> None:
    if fields:
        logger.info(
            "ignored fields: %s", ", ".join(repr(name[:60]) for name in sorted(fields)[:20])
        )


def parse_object(body: bytes) -> JsonObject:
    """Parses a body that must be a JSON object.

    Raises InvalidRequest. A body with too many values is refused before it is parsed.
    """
    if len(body) > MAX_SHORT_BYTES:
        check_num_values(body)
    try:
        value = msgspec.json.decode(body.removeprefix(_BYTE_ORDER_MARK))
    except _NOT_JSON as error:
        raise _explain_syntax_error(body, error) from error
    if not isinstance(value, dict):
        raise InvalidRequest(f"the body must be a JSON object, given {show_value(value)}")
    return value


def parse_value(body: bytes) -> object:
    """Parses JSON of any type. Raises the same errors as `parse_object`."""
    if len(body) > MAX_SHORT_BYTES:
        check_num_values(body)
    try:
        return msgspec.json.decode(body.removeprefix(_BYTE_ORDER_MARK))
    except _NOT_JSON as error:
        raise _explain_syntax_error(body, error) from error


def _explain_syntax_error(body: bytes, error: Exception) -> InvalidRequest:
    """Returns the error for a body that msgspec cannot parse.

    Names the faulty field if the standard library, which is less strict, can parse the body.
    """
    if isinstance(error, RecursionError):
        return InvalidRequest("the body is nested too deeply")
    if not body.strip():
        return InvalidRequest("the body must be a JSON object, given nothing")
    if len(body) > _MAX_REPARSED_BYTES:
        return InvalidRequest(f"the body is not valid JSON: {error}")
    try:
        value = json.loads(body, parse_int=float)
        for is_at_fault, limit in (
            (_is_infinite, "must be a finite number, at most 1e308"),
            (_has_surrogate, "must be Unicode text: half of a surrogate pair is no character"),
        ):
            if steps := find_path(value, is_at_fault):
                return UnreadableValue(limit, field=format_path(steps))
    except (ValueError, RecursionError):
        pass  # not parsed by the standard library either
    return InvalidRequest(f"the body is not valid JSON: {error}")


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _has_surrogate(value: object) -> bool:
    try:
        (value if isinstance(value, str) else "").encode()
    except UnicodeEncodeError:
        return True
    return False
