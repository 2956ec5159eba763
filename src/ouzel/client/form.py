"""Writes forms with a file, as `multipart/form-data`."""

import secrets
from collections.abc import Mapping

_DISPOSITION = "content-disposition: form-data; name="


def write_form(fields: Mapping[str, str], filename: str, content: bytes) -> tuple[bytes, str]:
    """Returns a form of the fields and of the field `file`, and the form's content type."""
    border = secrets.token_hex(16)
    head = "".join(
        f'--{border}\r\n{_DISPOSITION}"{_escape(name)}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    head += (
        f'--{border}\r\n{_DISPOSITION}"file"; filename="{_escape(filename)}"\r\n'
        "content-type: application/octet-stream\r\n\r\n"
    )
    # A file's name may have bytes that are no characters.
    form = b"".join((head.encode(errors="replace"), content, f"\r\n--{border}--\r\n".encode()))
    return form, f"multipart/form-data; boundary={border}"


def _escape(name: str) -> str:
    """Returns a name as browsers write it: its quotes and line ends would end the header."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
