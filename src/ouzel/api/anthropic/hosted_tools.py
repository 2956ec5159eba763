"""Reads the tools that this server runs: `mcp_servers`, toolsets, searches and pages of the web.

MCP servers have two forms. In the older form (beta mcp-client-2025-04-04) a server has a
`tool_configuration`. In the newer form (mcp-client-2025-11-20) an entry of `tools` with the type
`mcp_toolset` names the server. Errors name the client's own fields.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.responses.hosted.kinds import Entry, HostedKinds
from ouzel.responses.hosted.web_fetch import FETCH
from ouzel.wire.decode import JsonObject
from ouzel.wire.offered_tools import ClientName
from ouzel.wire.validation_errors import show_value

# Later dates let programs of code_execution call the tool, which this server does not have.
SEARCH_TYPES = ("web_search_20250305", "web_search_20260209", "web_search_20260318")
FETCH_TYPES = (
    "web_fetch_20250910",
    "web_fetch_20260209",
    "web_fetch_20260309",
    "web_fetch_20260318",
)
_DATED = {"web_search": SEARCH_TYPES, "web_fetch": FETCH_TYPES}
_DIRECT = "direct"
_OWN_FIELDS: Mapping[str, str] = {
    "server_label": "name",
    "server_url": "url",
    "authorization": "authorization_token",
    "filters.allowed_domains": "allowed_domains",
    "filters.blocked_domains": "blocked_domains",
}


class ToolConfiguration(msgspec.Struct, frozen=True):
    enabled: Annotated[bool | None, Meta(description="false: no tool of the server.")] = None
    allowed_tools: Annotated[
        list[str] | None, Meta(description="The tools that the model may call; null: all.")
    ] = None


class McpServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    type: Annotated[Literal["url"], Meta(description="url.")]
    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            pattern=r"^[A-Za-z0-9_-]+$",
            description="The name of the server, which its blocks repeat.",
        ),
    ]
    url: Annotated[
        str | None,
        Meta(description="The address; without it, name is a label of --mcp-servers."),
    ] = None
    authorization_token: Annotated[
        str | None, Meta(description="Sent to the server as a bearer token.")
    ] = None
    tool_configuration: Annotated[
        ToolConfiguration | None, Meta(description="The older form: without a toolset.")
    ] = None


McpServers = (
    Annotated[
        list[McpServerEntry],
        Meta(
            max_length=20,
            description="MCP servers whose tools this server runs, as --allowed-mcp-hosts and "
            "--mcp-servers allow.",
        ),
    ]
    | None
)


class ToolSetting(msgspec.Struct, frozen=True):
    enabled: Annotated[bool | None, Meta(description="The model may call the tool.")] = None
    defer_loading: Annotated[
        bool | None, Meta(description="Not used: the model sees all tools from the start.")
    ] = None


class SearchLocation(msgspec.Struct, frozen=True, tag="approximate"):
    city: str | None = None
    country: str | None = None
    region: str | None = None
    timezone: str | None = None


class CitationsSwitch(msgspec.Struct, frozen=True):
    enabled: Annotated[bool | None, Meta(description="The model cites the page.")] = None


class HostedToolFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an entry of `tools` that this server runs."""

    type: Annotated[
        str | None, Meta(description="custom; or the name of one of Anthropic's own tools.")
    ] = None
    mcp_server_name: Annotated[
        str | None, Meta(description="For mcp_toolset: the name of one of the mcp_servers.")
    ] = None
    default_config: Annotated[
        ToolSetting | None, Meta(description="For mcp_toolset: the setting of all its tools.")
    ] = None
    configs: Annotated[
        dict[str, ToolSetting] | None,
        Meta(description="For mcp_toolset: settings of single tools, by name."),
    ] = None
    max_uses: (
        Annotated[
            int,
            Meta(ge=1, description="For web_search_… and web_fetch_…: most uses in the answer."),
        ]
        | None
    ) = None
    allowed_domains: Annotated[
        list[str] | None, Meta(description="For web_search_… and web_fetch_…: only these domains.")
    ] = None
    blocked_domains: Annotated[
        list[str] | None,
        Meta(description="For web_search_… and web_fetch_…: none of these domains."),
    ] = None
    user_location: Annotated[
        SearchLocation | None, Meta(description="For web_search_…: where the user is, about.")
    ] = None
    citations: Annotated[
        CitationsSwitch | None, Meta(description="For web_fetch_…: whether pages are cited.")
    ] = None
    max_content_tokens: (
        Annotated[
            int,
            Meta(ge=1, description="For web_fetch_…: about the most tokens of a page."),
        ]
        | None
    ) = None
    url_sources: Annotated[
        object, Meta(description="For web_fetch_…: must be null: all sources of addresses count.")
    ] = None
    use_cache: Annotated[
        bool | None, Meta(description="For web_fetch_…: not used, pages are always fetched.")
    ] = None
    response_inclusion: Annotated[
        Literal["full", "excluded"] | None,
        Meta(description="Not used: it concerns calls of code_execution."),
    ] = None
    allowed_callers: Annotated[
        list[str] | None, Meta(description='Must have "direct": only the model calls.')
    ] = None


@dataclass(frozen=True, slots=True)
class _Settings:
    by_default: bool = True
    by_name: Mapping[str, bool] = field(default_factory=dict)

    def allows(self, name: str) -> bool:
        return self.by_name.get(name, self.by_default)


@dataclass(frozen=True, slots=True)
class HostedToolset:
    """The tools of a request that this server runs."""

    entries: Sequence[Entry] = ()  # their form is of the Responses API
    settings: Mapping[str, _Settings] = field(default_factory=dict)  # server names are the keys
    max_uses: Mapping[ClientName, int] = field(default_factory=dict)
    positions: Collection[int] = ()  # positions of these tools in `tools`

    def is_offered(self, name: ClientName) -> bool:
        settings = self.settings.get(name.namespace or "")
        return settings is None or settings.allows(name.name)


NO_HOSTED_TOOLSET = HostedToolset()


def read_hosted(
    servers: Sequence[McpServerEntry], tools: Sequence[HostedToolFields], kinds: HostedKinds
) -> HostedToolset:
    """Returns the tools of a request that this server runs. Raises InvalidRequest.

    Tools that are turned off are missing in it: they are left out or refused elsewhere.
    """
    entries, positions, max_uses = _read_web_tools(tools, kinds)
    toolsets = {position: tool for position, tool in enumerate(tools) if tool.type == "mcp_toolset"}
    settings: dict[str, _Settings] = {}
    if "mcp" in kinds.types:
        settings = _read_settings(servers, toolsets)
        entries += [
            (f"mcp_servers[{position}]", _read_server(server))
            for position, server in enumerate(servers)
        ]
    else:
        toolsets = {}
    for path, entry in entries:
        _check(path, entry, kinds)
    return HostedToolset(entries, settings, max_uses, {*positions, *toolsets})


def find_hints(kinds: HostedKinds) -> dict[str, str]:
    """Returns hints for the operator, by the types of tools that are turned off."""
    hints: dict[str, str] = {}
    if "mcp" in kinds.hints:
        hints |= dict.fromkeys(("", "mcp_toolset"), kinds.hints["mcp"])
    if "web_search" in kinds.hints:
        hints |= dict.fromkeys(SEARCH_TYPES, kinds.hints["web_search"])
    if FETCH in kinds.hints:
        hints |= dict.fromkeys(FETCH_TYPES, kinds.hints[FETCH])
    return hints


def _read_web_tools(
    tools: Sequence[HostedToolFields], kinds: HostedKinds
) -> tuple[list[Entry], set[int], dict[ClientName, int]]:
    """Returns the entries of searches and fetches, their positions, and the limits of their uses.

    Raises InvalidRequest.
    """
    entries: list[Entry] = []
    positions: dict[str, int] = {}
    max_uses: dict[ClientName, int] = {}
    for position, tool in enumerate(tools):
        name = "_".join((tool.type or "").split("_")[:2])
        if name not in _DATED or name not in kinds.types:
            continue
        path = f"tools[{position}]"
        _check_web_tool(tool, _DATED[name], path)
        if name in positions:
            raise InvalidRequest(f"must be the only {name}", field=f"{path}.type")
        positions[name] = position
        entries.append((path, _READERS[name](tool, path)))
        if tool.max_uses is not None:
            max_uses[ClientName(name)] = tool.max_uses
    return entries, set(positions.values()), max_uses


def _check_web_tool(tool: HostedToolFields, types: Collection[str], path: str) -> None:
    if tool.type not in types:
        known = ", ".join(map(show_value, types))
        raise InvalidRequest(
            f"must be one of {known}, given {show_value(tool.type)}", field=f"{path}.type"
        )
    if tool.allowed_callers is not None and _DIRECT not in tool.allowed_callers:
        raise InvalidRequest(
            f'must have "{_DIRECT}", given {show_value(tool.allowed_callers)}',
            field=f"{path}.allowed_callers",
        )
    if tool.url_sources is not None:
        raise InvalidRequest(
            f"must be null, given {show_value(tool.url_sources)}: addresses of the user, of tools "
            "of the client and of searches can be fetched",
            field=f"{path}.url_sources",
        )


def _read_filters(tool: HostedToolFields, path: str) -> JsonObject:
    """Returns the field `filters` of an entry, or no field."""
    filters: JsonObject = {}
    if tool.allowed_domains and tool.blocked_domains:
        raise InvalidRequest(
            "must not be given beside allowed_domains", field=f"{path}.blocked_domains"
        )
    if tool.allowed_domains:
        filters["allowed_domains"] = tool.allowed_domains
    if tool.blocked_domains:
        filters["blocked_domains"] = tool.blocked_domains
    return {"filters": filters} if filters else {}


def _read_search(tool: HostedToolFields, path: str) -> JsonObject:
    entry: JsonObject = {
        "type": "web_search",
        "external_web_access": False,
        **_read_filters(tool, path),
    }
    if tool.user_location is not None:
        entry["user_location"] = msgspec.to_builtins(tool.user_location)
    return entry


def _read_fetch(tool: HostedToolFields, path: str) -> JsonObject:
    return {
        "type": FETCH,
        "has_citations": tool.citations is not None and tool.citations.enabled is True,
        "max_content_tokens": tool.max_content_tokens,
        **_read_filters(tool, path),
    }


_READERS = {"web_search": _read_search, "web_fetch": _read_fetch}


def _read_settings(
    servers: Sequence[McpServerEntry], toolsets: Mapping[int, HostedToolFields]
) -> dict[str, _Settings]:
    """Returns the settings of the servers, from their toolsets or from the older form."""
    names: set[str] = set()
    for position, server in enumerate(servers):
        if server.name in names:
            raise InvalidRequest(
                f"must be unique, given {show_value(server.name)} again",
                field=f"mcp_servers[{position}].name",
            )
        names.add(server.name)
    settings: dict[str, _Settings] = {}
    for position, tool in toolsets.items():
        path, name = f"tools[{position}].mcp_server_name", tool.mcp_server_name
        if name not in names or name in settings:
            raise InvalidRequest(
                f"must name one of the mcp_servers, each once, given {show_value(name)}", field=path
            )
        assert name is not None
        default = tool.default_config is None or tool.default_config.enabled is not False
        by_name = {
            each: default if setting.enabled is None else setting.enabled
            for each, setting in (tool.configs or {}).items()
        }
        settings[name] = _Settings(default, by_name)
    for position, server in enumerate(servers):
        path, own = f"mcp_servers[{position}]", server.tool_configuration
        if not toolsets:
            settings[server.name] = _read_configuration(own)
        elif server.name not in settings:
            raise InvalidRequest(
                f"must be named by an mcp_toolset in tools, given {show_value(server.name)}",
                field=f"{path}.name",
            )
        elif own is not None:
            raise InvalidRequest(
                "must not be given beside an mcp_toolset", field=f"{path}.tool_configuration"
            )
    return settings


def _read_configuration(own: ToolConfiguration | None) -> _Settings:
    if own is None:
        return _Settings()
    if own.enabled is False:
        return _Settings(by_default=False)
    if own.allowed_tools is None:
        return _Settings()
    return _Settings(by_default=False, by_name=dict.fromkeys(own.allowed_tools, True))


def _read_server(server: McpServerEntry) -> JsonObject:
    entry: JsonObject = {
        "type": "mcp",
        "server_label": server.name,
        "require_approval": "never",
    }
    if server.url is not None:
        entry["server_url"] = server.url
    if server.authorization_token is not None:
        entry["authorization"] = server.authorization_token
    return entry


def _check(path: str, entry: JsonObject, kinds: HostedKinds) -> None:
    kind = kinds.find(entry["type"])
    assert kind is not None
    try:
        kind.check(entry, path)
    except InvalidRequest as error:
        raise restore_fields(error) from error


def restore_fields(error: InvalidRequest) -> InvalidRequest:
    """Returns the error with the names of the client's own fields."""
    param = error.param or ""
    for theirs, own in _OWN_FIELDS.items():
        param = re.sub(
            rf"^((?:mcp_servers|tools)\[\d+\])\.{re.escape(theirs)}", rf"\1.{own}", param
        )
    return error.at(param) if param != error.param else error
