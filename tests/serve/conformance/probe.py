"""A parameter that is tried, and the result of a try."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.serve.answers import Json
from tests.serve.conformance.asking import Asker, Refused


@dataclass(frozen=True)
class Probe:
    parameter: str
    listed: str
    fields: Json  # what is sent to see whether it is refused
    seen: str = ""
    holds: Callable[[Asker], bool] | None = None  # None: known to be refused
    param: str = ""  # that the refusal names, where it is not the parameter itself
    is_shown: bool = False  # asks the demo model that sees


def result(probe: Probe, ask: Asker) -> str:
    """Raises AssertionError where the parameter is accepted without its effect, or refused in the name of another."""
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
