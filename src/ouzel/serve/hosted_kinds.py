"""Makes the kinds of tools that this server runs, as the options ask for."""

import importlib.util
from collections.abc import Mapping

from ouzel.config import HostedToolsConfig
from ouzel.config.media_hosts import read_media_hosts
from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.mcp.configured import read_mcp_servers
from ouzel.hosted_tools.mcp.records import McpServer
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.providers import make_provider
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.responses.hosted.code_interpreter_kind import CodeInterpreterKind
from ouzel.responses.hosted.kinds import HostedKind, HostedKinds, JsonObject
from ouzel.responses.hosted.mcp_kind import McpKind
from ouzel.responses.hosted.shell_kind import ShellKind
from ouzel.responses.hosted.web_fetch import FETCH
from ouzel.responses.hosted.web_fetch_kind import WebFetchKind
from ouzel.responses.hosted.web_search_kind import WebSearchKind
from ouzel.store.base import Store

_FETCH_TIMEOUT_S = 20.0
_MAX_ANSWER_BYTES = 8 * 2**20  # limit of one message of an MCP server


def make_hosted_kinds(
    options: Options, store: Store | None, containers: Containers | None
) -> HostedKinds:
    """Returns the kinds of tools that are turned on, with hints for the others.

    `containers` is None if the sandbox is off.
    """
    config = options.hosted_tools
    kinds: list[HostedKind] = []
    hints: dict[str, str] = {}
    if config.mcp_servers or config.allowed_mcp_hosts:
        kinds.append(_make_mcp_kind(config))
    else:
        hints["mcp"] = "the operator allows it with --allowed-mcp-hosts or --mcp-servers"
    message_kinds: list[HostedKind] = []
    if config.search_provider == "none":
        hint = "the operator turns it on with --web-search-url or --web-search-provider"
        hints |= dict.fromkeys(WebSearchKind.types, hint)
        hints[FETCH] = f"{hint}; --web-fetch-hosts limits it"
    else:
        pages = _make_pages(config)
        kinds.append(_make_web_search_kind(config, pages))
        if pages is None:
            hints[FETCH] = "the operator turns it on with hosts in --web-fetch-hosts"
        else:
            message_kinds.append(WebFetchKind(pages))
    if containers is None:
        hints["code_interpreter"] = "the operator turns it on with --sandbox"
    else:
        kinds.append(CodeInterpreterKind(containers, store))
    kinds.append(ShellKind(containers, store))
    if store is None:
        hints["file_search"] = "it needs the store, which --no-store turns off"
    return HostedKinds(
        kinds,
        hints,
        call_timeout_s=config.tool_call_timeout_s,
        max_output_chars=config.max_tool_output_chars,
        max_calls=config.max_tool_calls,
        chat_entries=_make_chat_entries(config),
        takes_chat_entries="requested" in config.chat_tools,
        message_kinds=message_kinds,
        offers=_list_offers(config, has_sandbox=containers is not None),
        takes_mcp_urls=bool(config.allowed_mcp_hosts),
    )


def _make_chat_entries(config: HostedToolsConfig) -> list[JsonObject]:
    """Returns the entries of `tools` for every chat completion."""
    labels = _read_servers(config)
    entries: list[JsonObject] = []
    for name in config.chat_tools:
        label = name.removeprefix("mcp:")
        if name == "web_search":
            if config.search_provider == "none":
                raise InvalidOption("chat_tools: web_search needs --web-search-provider")
            entries.append({"type": "web_search"})
        elif label != name:
            if label not in labels:
                known = ", ".join(sorted(labels)) or "none"
                raise InvalidOption(
                    f"chat_tools: {name} must name one of --mcp-servers, which are: {known}"
                )
            entries.append({"type": "mcp", "server_label": label, "require_approval": "never"})
    return entries


def _read_servers(config: HostedToolsConfig) -> Mapping[str, McpServer]:
    try:
        return read_mcp_servers(config.mcp_servers)
    except ValueError as error:
        raise InvalidOption(f"mcp_servers: {error}") from None


def _list_offers(config: HostedToolsConfig, *, has_sandbox: bool) -> list[JsonObject]:
    """Returns the entries of `tools` for the tools that the operator has turned on."""
    offers: list[JsonObject] = []
    if config.search_provider != "none":
        offers.append({"type": "web_search"})
    if has_sandbox:
        offers.append({"type": "code_interpreter", "container": {"type": "auto"}})
    labels = _read_servers(config)
    return offers + [{"type": "mcp", "server_label": label} for label in labels]


def _make_mcp_kind(config: HostedToolsConfig) -> McpKind:
    if importlib.util.find_spec("mcp") is None:
        raise InvalidOption(f"mcp_servers: MCP needs the extra mcp: {install_hint('mcp')}")
    return McpKind(
        _read_servers(config),
        read_media_hosts(config.allowed_mcp_hosts, "allowed_mcp_hosts"),
        timeout_s=config.tool_call_timeout_s,
        max_answer_bytes=_MAX_ANSWER_BYTES,
        max_programs=config.max_mcp_programs,
        max_list_age_s=config.mcp_list_age_s,
        program_idle_s=config.mcp_program_idle_s,
    )


def _make_pages(config: HostedToolsConfig) -> Pages | None:
    if not config.fetch_hosts:
        return None
    allowed = read_media_hosts(config.fetch_hosts, "web_fetch_hosts")
    return Pages(allowed, timeout_s=min(config.tool_call_timeout_s, _FETCH_TIMEOUT_S))


def _make_web_search_kind(config: HostedToolsConfig, pages: Pages | None) -> WebSearchKind:
    timeout_s = min(config.tool_call_timeout_s, _FETCH_TIMEOUT_S)
    try:
        provider = make_provider(
            config.search_provider,
            config.web_search_url,
            config.web_search_key,
            timeout_s=timeout_s,
        )
    except (ValueError, InvalidRequest) as error:
        raise InvalidOption(str(error)) from None
    return WebSearchKind(provider, pages)
