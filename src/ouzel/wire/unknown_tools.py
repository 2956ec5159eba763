"""Leaves out or refuses tools of types that this server does not run, as `--unknown-tools` says.

OpenAI and Anthropic run such tools on their own servers (a web search, a code interpreter); Ouzel
runs the tools that its operator has configured, in the Responses API. Each tool that is left out
becomes a warning, which the answer carries to the client.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import show_value

logger = logging.getLogger(__name__)

_RUNS_NONE = "this server runs no such tool"
_MAX_KIND = 60  # characters of a tool's type in a warning
_MAX_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class UnknownTool:
    path: str  # the tool's path in the request
    kind: str | None  # the tool's type; None for a field that only names tools, as mcp_servers

    @property
    def shown(self) -> str:
        return (
            self.path if self.kind is None else f"{self.path} ({show_value(self.kind[:_MAX_KIND])})"
        )


def leave_out(
    unknown: Sequence[UnknownTool],
    *,
    known: Sequence[str],
    has_others: bool,
    refuses: bool,
    hints: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Logs the first 20 `unknown` tools and returns a warning for each of them.

    `known` are the supported tool types. `hints` tell how the operator turns tools on, by type.
    Raises InvalidRequest if the server `refuses` unknown tools, or if the request has no other
    tools.
    """
    if not unknown:
        return ()
    if refuses or not has_others:
        raise _refusal(unknown[0], known, hints or {})
    shown = unknown[:_MAX_WARNINGS]
    logger.info(
        "left out tools that this server does not run: %s", ", ".join(tool.shown for tool in shown)
    )
    return tuple(f"{tool.shown} was left out: {_reason(tool, hints or {})}" for tool in shown)


def _refusal(tool: UnknownTool, known: Sequence[str], hints: Mapping[str, str]) -> InvalidRequest:
    reason = _reason(tool, hints)
    if tool.kind is None:
        return InvalidRequest(f"must be empty: {reason}", field=tool.path)
    types = ", ".join(map(show_value, known))
    return InvalidRequest(
        f"must be one of {types}, given {show_value(tool.kind)}: {reason}",
        field=f"{tool.path}.type",
    )


def _reason(tool: UnknownTool, hints: Mapping[str, str]) -> str:
    hint = hints.get(tool.kind or "")
    return _RUNS_NONE if hint is None else f"{_RUNS_NONE} ({hint})"
