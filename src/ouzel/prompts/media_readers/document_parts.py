"""Reads content parts with a file: OpenAI's chats have the fields in an object, its responses in
the part.
"""

from collections.abc import Mapping

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import DocumentPart
from ouzel.prompts.media_readers.picture_parts import read_detail
from ouzel.prompts.media_readers.wrong_values import describe_value, invalid

_DATA, _URL, _ID = "file_data", "file_url", "file_id"


def document_part(fields: Mapping[str, object], path: str) -> DocumentPart:
    """Reads the fields of a file. `path` is the path of the object with the fields.

    Raises InvalidRequest.
    """
    if fields.get(_ID) is not None:
        given = describe_value(fields[_ID])
        raise InvalidRequest(
            f"must not be given: messages cannot name uploaded files, given {given}",
            field=f"{path}.{_ID}",
        )
    data, url = fields.get(_DATA), fields.get(_URL)
    if data is not None and url is not None:
        raise InvalidRequest(f"must not be given beside {_DATA}", field=f"{path}.{_URL}")
    detail = read_detail(fields.get("detail"), f"{path}.detail")
    if url is not None:
        return DocumentPart(
            f"{path}.{_URL}", _text(url, f"{path}.{_URL}", "a URL, a data URL or a path"), detail
        )
    text = _text(data, f"{path}.{_DATA}", "a data URL or base64")
    # A colon is in every URL, but never in base64.
    return DocumentPart(f"{path}.{_DATA}", text if ":" in text else f"data:;base64,{text}", detail)


def _text(value: object, path: str, expected: str) -> str:
    if not isinstance(value, str) or not value:
        raise invalid(path, expected, value)
    return value
