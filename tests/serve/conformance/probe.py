"""Tries a parameter of requests, and returns the result."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.serve.answers import Json
from tests.serve.conformance.asking import Asker, Refused


@dataclass(frozen=True)
class Probe:
    parameter: str
    listed: str
    fields: Json  # the fields of the request; a server may refuse them
    seen: str = ""
    holds: Callable[[Asker], bool] | None = None  # None: known to be refused
    param: str = ""  # the parameter in the refusal, if it is another one
    is_shown: bool = False  # True: asks the demo model of pictures


def result(probe: Probe, ask: Asker) -> str:
    """Tries the parameter.

    Raises AssertionError if the server accepts it without its effect, or names another parameter in
    its refusal.
    """
    param = probe.param or probe.parameter
    try:
        ask(**probe.fields)
        assert probe.holds is not None, f"{probe.parameter} is accepted: say how its effect is seen"
        assert probe.holds(ask), (
            f"{probe.parameter} is accepted without its effect (stream: {ask.is_stream})"
        )
    except Refused as refused:
        assert refused.param == param, (
            f"{probe.parameter} is refused in the name of {refused.param}"
        )
        return f"refused with {refused.status}"
    return "works"
