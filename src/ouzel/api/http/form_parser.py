"""Parses `multipart/form-data` piece by piece: short fields as texts, files as streams of bytes."""

from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from ouzel.errors import InvalidRequest

_MAX_FIELDS = 32
_MAX_FIELD_BYTES = 2**16
_MAX_NAME = 1024  # bytes of a name of a file


@dataclass(frozen=True, slots=True)
class FormField:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class FileBegin:
    name: str  # the name of the field
    filename: str


@dataclass(frozen=True, slots=True)
class FileBytes:
    data: bytes


FormPart = FormField | FileBegin | FileBytes


class FormParser:
    def __init__(self, content_type: str, *, file_field: str = "") -> None:
        """A part with the name `file_field` is a file, also without a filename.

        Raises InvalidRequest unless the content type is a form with a boundary.
        """
        self._file_field = file_field
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidRequest(
                "Content-Type must be multipart/form-data with a boundary, "
                f"given {content_type[:100]!r}"
            )
        self._parts: list[FormPart] = []
        self._num_fields = 0
        self._header = b""
        self._headers: dict[bytes, bytes] = {}
        self._value = b""
        self._field: str | None = None  # the field that is being read; None: a file
        self._is_whole = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_to_header,
                    "on_header_value": self._add_to_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_end": self._end,
                },
            )
        except FormParserError as error:
            raise InvalidRequest(f"the body is not a valid form: {error}") from None

    def feed(self, data: bytes) -> list[FormPart]:
        """Returns the parts that the next bytes of the body complete or continue.

        Raises InvalidRequest.
        """
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise InvalidRequest(f"the body is not a valid form: {error}") from None
        parts, self._parts = self._parts, []
        return parts

    def finish(self) -> None:
        """Ends the body. Raises InvalidRequest if the form is not whole."""
        if not self._is_whole:
            raise InvalidRequest("the body is not a valid form: its last boundary is missing")

    def _begin_part(self) -> None:
        self._num_fields += 1
        if self._num_fields > _MAX_FIELDS:
            raise InvalidRequest(f"the form must have <= {_MAX_FIELDS} fields")
        self._headers = {}

    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header = self._value = b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode(errors="replace")
        filename = options.get(b"filename")
        self._value = b""
        if filename is None and name == self._file_field and name:
            filename = b""
        if filename is None:
            self._field = name
            return
        self._field = None
        if len(filename) > _MAX_NAME:
            raise InvalidRequest(f"must have a name of <= {_MAX_NAME} bytes", field=name)
        self._parts.append(FileBegin(name, filename.decode(errors="replace")))

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._parts.append(FileBytes(data[start:end]))
            return
        self._value += data[start:end]
        if len(self._value) > _MAX_FIELD_BYTES:
            raise InvalidRequest(f"must be <= {_MAX_FIELD_BYTES} bytes long", field=self._field)

    def _end_part(self) -> None:
        if self._field is not None:
            self._parts.append(FormField(self._field, self._value.decode(errors="replace")))
            self._value = b""

    def _end(self) -> None:
        self._is_whole = True
