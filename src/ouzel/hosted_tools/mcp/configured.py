"""Reads the MCP servers that the operator names in the option `mcp_servers`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any  # Any: values of the configuration

import msgspec
from msgspec import Meta

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.mcp.headers import find_header_fault
from ouzel.hosted_tools.mcp.records import LocalServer, McpServer, RemoteServer
from ouzel.outbound.hosts import read_target
from ouzel.outbound.trusted import trust_host

_OPTION = "mcp_servers"
_Label = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class _Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    label: _Label
    url: str | None = None
    headers: dict[str, str] = {}
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None


def read_mcp_servers(entries: Sequence[str | Mapping[str, Any]]) -> dict[str, McpServer]:
    """Reads LABEL=URL, or a mapping with `label` and `url` or `command`; the servers by label.

    Raises ValueError, whose message names the entry but none of its values.
    """
    servers: dict[str, McpServer] = {}
    for position, value in enumerate(entries):
        server = _read(value, f"entry {position + 1}")
        if server.label in servers:
            raise ValueError(f"entry {position + 1}: the label {server.label!r} is given again")
        servers[server.label] = server
    return servers


def _read(value: str | Mapping[str, Any], name: str) -> McpServer:
    fields: object = value
    if isinstance(value, str):
        label, separator, url = value.partition("=")
        if not separator or not url.startswith(("http://", "https://")):
            raise ValueError(f"{name}: must be LABEL=URL, or a mapping in the file")
        fields = {"label": label, "url": url}
    try:
        entry = msgspec.convert(fields, _Entry)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from None
    if (entry.url is None) == (entry.command is None):
        raise ValueError(f"{name} ({entry.label}): must have either url or command")
    if entry.url is not None:
        _refuse(entry.args or entry.env or entry.cwd, "args, env and cwd need command", entry, name)
        if not entry.url.startswith(("http://", "https://")):
            raise ValueError(f"{name} ({entry.label}): url must begin with http:// or https://")
        try:
            read_target(entry.url, "url")
        except InvalidRequest as error:
            raise ValueError(f"{name} ({entry.label}): {error}") from None
        if (fault := find_header_fault(entry.headers)) is not None:
            raise ValueError(f"{name} ({entry.label}): headers {fault}")
        return RemoteServer(entry.label, entry.url, entry.headers, is_operators=True)
    _refuse(entry.headers, "headers need url", entry, name)
    assert entry.command is not None
    return LocalServer(entry.label, entry.command, tuple(entry.args), entry.env, entry.cwd)


def _refuse(value: object, complaint: str, entry: _Entry, name: str) -> None:
    if value:
        raise ValueError(f"{name} ({entry.label}): {complaint}")


def trust_server(server: McpServer) -> AllowedHosts:
    """Returns the hosts that a server of the operator needs: its own, at any address."""
    if isinstance(server, LocalServer):
        return AllowedHosts(False, frozenset(), (), _OPTION)
    return trust_host(server.url, _OPTION)
