"""Reads and checks the lines of an input file, piece by piece."""

from collections.abc import Callable

import msgspec

from ouzel.batches.limits import MAX_CUSTOM_ID_LEN, MAX_LINES
from ouzel.errors import InvalidRequest
from ouzel.store.batches.records import NewLine

_MAX_FAULTS = 100
_MAX_SHOWN = 60  # characters of a wrong value in a message
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SURROGATES = range(0xD800, 0xE000)


class LineFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of an input file, as OpenAI reports it."""

    code: str
    message: str
    param: str | None = None
    line: int | None = None  # the first line is 1


class _Wrong(Exception):
    """A line is wrong; the arguments are the code, the message and the field."""


class _Body(msgspec.Struct):
    model: str = ""


# Worker threads use these decoders; msgspec prepares the types here, in one thread.
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_body = msgspec.json.Decoder(_Body).decode


class InputLines:
    """Splits a file into lines and collects the faults of all of them."""

    def __init__(self, endpoint: str, find_model: Callable[[str, str], str]) -> None:
        """`find_model` takes the name of a model and the endpoint (`LineApp.find_model`)."""
        self._endpoint = endpoint
        self._find_model = find_model
        self._rest = b""
        self._number = 0  # number of the last line
        self._custom_ids: set[str] = set()
        self._found: dict[str, str | InvalidRequest] = {}  # models by their names in lines
        self.model: str | None = None  # the first name of the model of all lines
        self.num_lines = 0
        self.faults: list[LineFault] = []

    @property
    def is_broken(self) -> bool:
        """Tells whether enough faults were found: reading on is of no use."""
        return len(self.faults) >= _MAX_FAULTS or self.num_lines > MAX_LINES

    def feed(self, piece: bytes) -> list[NewLine]:
        """Returns the correct lines that end in this piece."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return self._read_all(whole)

    def finish(self) -> list[NewLine]:
        """Returns the last line, if the file does not end with a line break."""
        rest, self._rest = self._rest, b""
        lines = self._read_all([rest])
        if not self.num_lines and not self.faults:
            self.faults.append(
                LineFault(code="empty_file", message="the input file has no requests")
            )
        return lines

    def _read_all(self, texts: list[bytes]) -> list[NewLine]:
        lines = []
        for text in texts:
            self._number += 1
            if not text.strip() or self.is_broken:
                continue
            self.num_lines += 1
            try:
                lines.append(self._read(text.removeprefix(_BYTE_ORDER_MARK)))
            except _Wrong as wrong:
                code, message, field = wrong.args
                self.faults.append(
                    LineFault(code=code, message=message, param=field, line=self._number)
                )
        return lines

    def _read(self, text: bytes) -> NewLine:
        if self.num_lines > MAX_LINES:
            raise _Wrong(
                "too_many_requests", f"an input file must have at most {MAX_LINES} requests", None
            )
        try:
            fields = _decode_object(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise _Wrong(
                "invalid_json_line", f"the line must be a JSON object: {error}", None
            ) from None
        custom_id = self._read_custom_id(fields)
        method = _read_text(fields, "method")
        if method != "POST":
            raise _Wrong("invalid_method", f"method must be POST, given {_show(method)}", "method")
        url = _read_text(fields, "url")
        if url != self._endpoint:
            raise _Wrong(
                "invalid_url",
                f"url must be the endpoint of the batch, {self._endpoint}, given {_show(url)}",
                "url",
            )
        body = bytes(fields.get("body", b""))
        self._check_model(body)
        self._custom_ids.add(custom_id)
        return NewLine(custom_id, body)

    def _read_custom_id(self, fields: dict[str, msgspec.Raw]) -> str:
        custom_id = _read_text(fields, "custom_id")
        if not custom_id or len(custom_id) > MAX_CUSTOM_ID_LEN:
            message = f"custom_id must have 1 to {MAX_CUSTOM_ID_LEN} characters"
            raise _Wrong("invalid_custom_id", f"{message}, given {len(custom_id)}", "custom_id")
        if any(char == "\0" or ord(char) in _SURROGATES for char in custom_id):
            raise _Wrong(
                "invalid_custom_id",
                "custom_id must not have the character NUL or half a surrogate pair",
                "custom_id",
            )
        if custom_id in self._custom_ids:
            raise _Wrong(
                "duplicate_custom_id",
                f"custom_id must differ in each line, given {_show(custom_id)} again",
                "custom_id",
            )
        return custom_id

    def _check_model(self, body: bytes) -> None:
        try:
            name = _decode_body(body).model
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise _Wrong(
                "invalid_request", "body must be an object with the name of a model", "body"
            ) from None
        if not name:
            raise _Wrong("missing_required_parameter", "body.model must be given", "body.model")
        if name not in self._found:
            try:
                self._found[name] = self._find_model(name, self._endpoint)
            except InvalidRequest as error:
                self._found[name] = error
        model = self._found[name]
        if isinstance(model, InvalidRequest):
            raise _Wrong(model.code or "invalid_model", str(model), "body.model")
        if self.model is None:
            self.model = model
        if model != self.model:
            raise _Wrong(
                "mismatched_model",
                f"body.model must be the same in all lines: {_show(self.model)}, given "
                f"{_show(name)}",
                "body.model",
            )


def _read_text(fields: dict[str, msgspec.Raw], name: str) -> str:
    raw = fields.get(name)
    if raw is None:
        raise _Wrong("missing_required_parameter", f"{name} must be given", name)
    try:
        return _decode_text(raw)
    except (msgspec.MsgspecError, UnicodeError):
        raise _Wrong("invalid_type", f"{name} must be a string", name) from None


def _show(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
