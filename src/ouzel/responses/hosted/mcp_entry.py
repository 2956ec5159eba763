"""Reads entries of the field `tools` with the type `mcp`."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.mcp.headers import find_header_fault
from ouzel.hosted_tools.mcp.records import McpServer, RemoteServer
from ouzel.outbound.hosts import check_host, read_target
from ouzel.responses.hosted.mcp import ListedMcpTool

Label = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class ToolFilter(msgspec.Struct, frozen=True):
    tool_names: list[str] | None = None
    read_only: bool | None = None

    def passes(self, tool: ListedMcpTool) -> bool:
        if self.tool_names is not None and tool.name not in self.tool_names:
            return False
        says = (tool.annotations or {}).get("readOnlyHint") is True
        return self.read_only is None or says == self.read_only


class ApprovalFilter(msgspec.Struct, frozen=True):
    always: ToolFilter | None = None
    never: ToolFilter | None = None


class McpEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `tools` with the type `mcp`."""

    type: Literal["mcp"]
    server_label: Label
    server_url: str | None = None
    server_description: str | None = None
    headers: dict[str, str] | None = None
    authorization: str | None = None
    allowed_tools: list[str] | ToolFilter | None = None
    require_approval: Literal["always", "never"] | ApprovalFilter | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None
    defer_loading: bool | None = None

    def allows(self, tool: ListedMcpTool) -> bool:
        match self.allowed_tools:
            case None:
                return True
            case ToolFilter() as tools:
                return tools.passes(tool)
            case names:
                return tool.name in names

    def needs_more_than(self, names: set[str]) -> bool:
        """Tells whether the entry allows tools by name that are not among `names`."""
        match self.allowed_tools:
            case None:
                return False
            case ToolFilter(tool_names=allowed):
                return not names.issuperset(allowed or ())
            case allowed:
                return not names.issuperset(allowed)

    def needs_approval(self, tool: ListedMcpTool) -> bool:
        """Tells whether the client must allow each call of the tool; without the field it must."""
        match self.require_approval:
            case None | "always":
                return True
            case "never":
                return False
            case ApprovalFilter(always, never):
                if always is not None and always.passes(tool):
                    return True
                return never is None or not never.passes(tool)


def find_server(
    entry: McpEntry, path: str, configured: Mapping[str, McpServer], allowed: AllowedHosts
) -> McpServer:
    """Returns the server with the URL of an entry, or the configured server with its label.

    Raises InvalidRequest if the client may not name it.
    """
    for name in ("connector_id", "tunnel_id"):
        if getattr(entry, name) is not None:
            raise InvalidRequest(
                "is not supported by this server (use server_url)", field=f"{path}.{name}"
            )
    if entry.server_url is not None:
        field = f"{path}.server_url"
        if not entry.server_url.startswith(("http://", "https://")):
            raise InvalidRequest("must begin with http:// or https://", field=field)
        check_host(read_target(entry.server_url, field), allowed, field)
        return RemoteServer(entry.server_label, entry.server_url, _read_headers(entry, path))
    server = configured.get(entry.server_label)
    if server is None:
        names = ", ".join(sorted(configured)) or "none"
        raise InvalidRequest(
            f"is required unless server_label is one of the servers of this server's "
            f"mcp_servers: {names}, given {entry.server_label!r}",
            field=f"{path}.server_url",
        )
    for name in ("headers", "authorization"):
        if getattr(entry, name):
            raise InvalidRequest(
                "needs server_url: the operator has configured this server",
                field=f"{path}.{name}",
            )
    return server


def _read_headers(entry: McpEntry, path: str) -> dict[str, str]:
    """Returns the headers for the server. No error shows a value, which may be secret."""
    headers = dict(entry.headers or {})
    if (fault := find_header_fault(headers)) is not None:
        raise InvalidRequest(fault, field=f"{path}.headers")
    if entry.authorization is None:
        return headers
    field = f"{path}.authorization"
    if any(name.lower() == "authorization" for name in headers):
        raise InvalidRequest("must not be given beside the header Authorization", field=field)
    if find_header_fault({"Authorization": entry.authorization}) is not None:
        raise InvalidRequest("must be a token in ASCII without line breaks", field=field)
    return headers | {"Authorization": f"Bearer {entry.authorization}"}
