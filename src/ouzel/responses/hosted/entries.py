"""Decodes entries of the field `tools`; errors name the path of the entry."""

from typing import TypeVar

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject, decode_object

Entry = TypeVar("Entry", bound=msgspec.Struct)


def decode_entry(entry: JsonObject, kind: type[Entry], path: str) -> Entry:
    """Returns the entry as a record. Raises InvalidRequest."""
    try:
        return decode_object(entry, kind)
    except InvalidRequest as error:
        raise error.at(f"{path}.{error.param}" if error.param else path) from error.__cause__
