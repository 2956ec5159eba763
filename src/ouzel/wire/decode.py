"""Bodies become request structs; what does not fit becomes an InvalidRequest with the field, the limit and the value.

As OpenAI does it: null is "not given", and of a name given twice the last counts. Numbers are lenient
(`lenient_numbers`), the rest is strict. A body is parsed once into plain objects, so that fields we do not know can be
named, and the value at fault can be shown.
"""

import json
import logging
import math
from typing import TypeVar

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.wire.aliases import as_named, in_our_names
from ouzel.wire.hints import HINTS, log_hints
from ouzel.wire.lenient_numbers import with_plain_numbers
from ouzel.wire.unknown_fields import unknown_fields
from ouzel.wire.unsupported import NEUTRAL_VALUES, refuse_unsupported
from ouzel.wire.validation_errors import (
    UnreadableValue,
    first_path,
    invalid_request,
    path_of,
    shown,
)
from ouzel.wire.value_limits import MAX_SHORT_BYTES, check_num_values

_NOT_JSON = (
    msgspec.MsgspecError,
    UnicodeDecodeError,
    RecursionError,
)  # the faults of a body that cannot be parsed
_MAX_READ_AGAIN_BYTES = 2**20  # to say more of what is wrong; no other thread runs meanwhile

logger = logging.getLogger(__name__)

Body = TypeVar("Body", bound=msgspec.Struct)
JsonObject = dict[str, object]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # RFC 8259, section 8.1: a parser may ignore it; some clients on Windows send it


def decode_body(body: bytes, body_type: type[Body]) -> Body:
    """Logs the names of the fields that nobody here knows."""
    return decode_object(parse_object(body), body_type)


def decode_object(fields: JsonObject, body_type: type[Body]) -> Body:
    """Decodes a body, or an object in it, that has been parsed."""
    own_fields = body_type.__struct_encode_fields__
    named = in_our_names(fields, own_fields)
    refuse_unsupported(named, own_fields=own_fields)
    try:
        body = _convert(named, body_type)
    except InvalidRequest as error:
        raise as_named(error, lambda: fields) from error.__cause__
    log_hints(named, own_fields)
    log_ignored(unknown_fields(named, body) - NEUTRAL_VALUES.keys() - HINTS.keys())
    return body


def _convert(fields: JsonObject, body_type: type[Body]) -> Body:
    try:
        return msgspec.convert(fields, body_type)
    except msgspec.ValidationError:
        pass  # as it stands; most bodies never get here
    plain = with_plain_numbers(fields, body_type)
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
    """Raises InvalidRequest, for bodies of too many values before they are parsed."""
    if len(body) > MAX_SHORT_BYTES:
        check_num_values(body)
    try:
        value = msgspec.json.decode(body.removeprefix(_BYTE_ORDER_MARK))
    except _NOT_JSON as error:
        raise _not_json(body, error) from error
    if not isinstance(value, dict):
        raise InvalidRequest(f"the body must be a JSON object, given {shown(value)}")
    return value


def parse_value(body: bytes) -> object:
    """Parses JSON of any type. Raises as `parse_object`."""
    if len(body) > MAX_SHORT_BYTES:
        check_num_values(body)
    try:
        return msgspec.json.decode(body.removeprefix(_BYTE_ORDER_MARK))
    except _NOT_JSON as error:
        raise _not_json(body, error) from error


def _not_json(body: bytes, error: Exception) -> InvalidRequest:
    """Names the faulty field where the standard library, which is less strict, can read the body."""
    if isinstance(error, RecursionError):
        return InvalidRequest("the body is nested too deeply")
    if not body.strip():
        return InvalidRequest("the body must be a JSON object, given nothing")
    if len(body) > _MAX_READ_AGAIN_BYTES:
        return InvalidRequest(f"the body is not valid JSON: {error}")
    try:
        value = json.loads(body, parse_int=float)
        for is_at_fault, limit in (
            (_is_infinite, "must be a finite number, at most 1e308"),
            (_has_surrogate, "must be Unicode text: half of a surrogate pair is no character"),
        ):
            if steps := first_path(value, is_at_fault):
                return UnreadableValue(limit, field=path_of(steps))
    except (ValueError, RecursionError):
        pass  # it is beyond reading
    return InvalidRequest(f"the body is not valid JSON: {error}")


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _has_surrogate(value: object) -> bool:
    try:
        (value if isinstance(value, str) else "").encode()
    except UnicodeEncodeError:
        return True
    return False
