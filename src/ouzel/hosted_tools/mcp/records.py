"""Defines the records of MCP servers, their tools and the results of calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ouzel.errors import OuzelError


class McpError(OuzelError):
    """An MCP server cannot be reached, or does not speak the protocol; the client may change it."""

    status = 424
    type = "external_connector_error"
    code = "http_error"


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """An MCP server at a URL."""

    label: str
    url: str = field(repr=False)  # may have a secret in its path
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_operators: bool = False  # clients know only the label of such a server


@dataclass(frozen=True, slots=True)
class LocalServer:
    """An MCP server that the operator has named by its command."""

    label: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None

    @property
    def is_operators(self) -> bool:
        return True


McpServer = RemoteServer | LocalServer


@dataclass(frozen=True, slots=True)
class McpTool:
    name: str
    description: str | None
    input_schema: dict[str, object]
    annotations: dict[str, object] | None
    num_chars: int  # about the length in JSON

    @property
    def is_read_only(self) -> bool:
        """Tells whether the server says that the tool changes nothing; the server may lie."""
        return self.annotations is not None and self.annotations.get("readOnlyHint") is True


@dataclass(frozen=True, slots=True)
class McpResult:
    text: str  # all contents of the result, as the model reads them
    is_error: bool
