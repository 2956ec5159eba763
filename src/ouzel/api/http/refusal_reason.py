"""The log says why a request was refused, in our words alone: nothing that the client wrote may stand there.

A complaint names the limit and then the value; so it is told up to where a value may begin: behind "given", a colon or
a quotation mark. A field's path is told up to an object whose names are the client's own.
"""

import re
from dataclasses import dataclass

from ouzel.api.http.routing_errors import MethodNotAllowed
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
_UNTOLD = "…"  # instead of what may be the client's


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """`error` is the code of the answer, or its type where it has no code."""

    error: str
    field: str | None
    reason: str


def reason_of(error: BaseException) -> RefusalReason:
    if not isinstance(error, OuzelError):
        return RefusalReason(OuzelError.type, None, UNEXPECTED)
    reason = _our_part(error)
    return RefusalReason(error.code or error.type, _our_field(error, reason), reason)


def _our_part(error: OuzelError) -> str:
    if isinstance(error, MethodNotAllowed):
        return f"allowed: {error.allowed}"  # the method and the path stand in the line already
    complaint = str(error.args[0]).removeprefix(":").strip()
    return _CLIENTS_PART.sub("", complaint)[:_MAX_CHARS].rstrip()


def _our_field(error: OuzelError, reason: str) -> str | None:
    if not error.param:
        return None
    if isinstance(error, UnreadableValue):
        return _UNTOLD
    return _our_part_of_path(error.param, has_own_end=not reason.startswith(NOT_A_FIELD))


def _our_part_of_path(path: str, *, has_own_end: bool) -> str:
    """The end of the path of an unknown field is the client's."""
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
