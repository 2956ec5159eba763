"""Parses the body of an invocation by its content type."""

from ouzel.api.lmi.csv_body import read_csv
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import parse_value

_MAX_SHOWN = 60  # longest part shown of a content type, in characters


def read_content(content_type: str, body: bytes) -> object:
    """Returns a JSON value. Plain text and CSV become fields of LMI's standard schema.

    Raises InvalidRequest.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    match media_type:
        case "application/json":
            return parse_value(body)
        case "text/plain":
            return {"inputs": _text(body)}
        case "text/csv":
            return read_csv(body)
        case _:
            given = repr(media_type[:_MAX_SHOWN])
            raise InvalidRequest(
                f"must be application/json, text/plain or text/csv, given {given}",
                field="Content-Type",
            )


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"a text/plain body must be UTF-8: {error.reason}") from error
