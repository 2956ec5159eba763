"""Reads Ollama's `keep_alive`: how long a model stays in memory without requests."""

import re

import msgspec

from ouzel.api.endpoint.model_choice import read_fields
from ouzel.lifecycle.models import ManagedModel

# a duration in Go's syntax
DURATION = (
    r"^[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)?"
    r"((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*$"
)
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)?")
_FOR_EVER_S = 100 * 365 * 86400
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}


class _Fields(msgspec.Struct):
    keep_alive: float | str | None = None
    prompt: object = None
    messages: object = None
    suffix: object = None
    images: object = None


def read_seconds(keep_alive: float | str) -> float | None:
    """Returns the seconds of a number or a duration like `1h30m`.

    A negative number, or a century, is for ever: None. Raises ValueError for any other text.
    """
    if isinstance(keep_alive, str):
        if re.match(DURATION, keep_alive) is None:
            raise ValueError(f"{keep_alive!r} is no duration")
        parts = _PART.findall(keep_alive)
        seconds = sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts)
        seconds = -seconds if keep_alive.startswith("-") else seconds
    else:
        seconds = keep_alive
    return seconds if 0 <= seconds < _FOR_EVER_S else None


def apply_keep_alive(model: ManagedModel, body: bytes) -> None:
    """Sets the keep-alive of a body for the model. A wrong value is left to the endpoint."""
    fields = read_fields(body, _Fields)
    if fields is None or fields.keep_alive is None:
        return
    try:
        model.ask_keep_alive(read_seconds(fields.keep_alive))
    except ValueError:
        return


def asks_to_unload(body: bytes) -> bool:
    """Tells whether a body only asks for the unload of its model: without a prompt."""
    fields = read_fields(body, _Fields)
    if fields is None or fields.keep_alive is None:
        return False
    if fields.prompt or fields.messages or fields.suffix or fields.images:
        return False
    try:
        return read_seconds(fields.keep_alive) == 0
    except ValueError:
        return False
