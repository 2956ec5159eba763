"""Writes the reason of a refusal for the log, without any text of the client.

An error message names the limit first and the value last. It is cut before "given", a colon or a
quotation mark, where the value may begin. The path of a field is cut behind an object with names
that the client chooses.
"""

import re
from dataclasses import dataclass

from ouzel.api.http.errors import MethodNotAllowed
from ouzel.errors import UNEXPECTED, OuzelError
from ouzel.wire.validation_errors import NOT_A_FIELD, UnreadableValue

_CLIENTS_PART = re.compile(
    r",\s*given\b.*|(?<=.):\s.*|(?<![A-Za-z])['\"“].*|[\x00-\x1f\x7f].*", re.DOTALL
)
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}((\[\d+\])*)")
_CLIENTS_OBJECTS = frozenset(
    {
        "arguments",
        "chat_template_kwargs",
        "function_call",
        "input_schema",
        "json_schema",
        "logit_bias",
        "metadata",
        "parameters",
        "properties",
        "regex",
        "schema",
        "variables",
    }
)
_MAX_CHARS = 160
# stands for text that may be the client's
_UNTOLD = "…"


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """The reason of a refusal.

    `error` is the code of the answer, or its type without a code.
    """

    error: str
    field: str | None
    reason: str


def make_refusal_reason(error: BaseException) -> RefusalReason:
    if not isinstance(error, OuzelError):
        return RefusalReason(OuzelError.type, None, UNEXPECTED)
    reason = _our_part(error)
    return RefusalReason(error.code or error.type, _our_field(error, reason), reason)


def _our_part(error: OuzelError) -> str:
    if isinstance(error, MethodNotAllowed):
        # the log line has the method and the path already
        return f"allowed: {error.allowed}"
    complaint = str(error.args[0]).removeprefix(":").strip()
    return _CLIENTS_PART.sub("", complaint)[:_MAX_CHARS].rstrip()


def _our_field(error: OuzelError, reason: str) -> str | None:
    if not error.param:
        return None
    if isinstance(error, UnreadableValue):
        return _UNTOLD
    return _our_part_of_path(error.param, has_own_end=not reason.startswith(NOT_A_FIELD))


def _our_part_of_path(path: str, *, has_own_end: bool) -> str:
    """Replaces the names that the client chose, at the end of a field's path, by "…".

    `has_own_end` is False if the path ends with an unknown field: the client chose its name.
    """
    names = path.split(".")
    num_own = len(names) if has_own_end else len(names) - 1
    for position, name in enumerate(names[:num_own]):
        if not _FIELD_NAME.fullmatch(name):
            num_own = position
            break
        if name.partition("[")[0] in _CLIENTS_OBJECTS:
            num_own = min(num_own, position + 1)
            break
    return ".".join([*names[:num_own], _UNTOLD] if num_own < len(names) else names)
