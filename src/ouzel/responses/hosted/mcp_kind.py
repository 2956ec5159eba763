"""Runs the tools of MCP servers: entries of `tools` with the type `mcp`."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.mcp.configured import trust_server
from ouzel.hosted_tools.mcp.records import McpServer, McpTool, RemoteServer
from ouzel.hosted_tools.mcp.session import McpSession
from ouzel.outbound.hosts import check_host, read_target
from ouzel.responses.hosted.entries import decode_entry
from ouzel.responses.hosted.items import AnyHostedItem, read_hosted_item
from ouzel.responses.hosted.kinds import (
    CallResult,
    HostedFunction,
    JsonObject,
    ModelCall,
    OpeningContext,
)
from ouzel.responses.hosted.mcp import (
    ListedMcpTool,
    McpApprovalRequest,
    McpApprovalResponse,
    McpCall,
    McpListTools,
)
from ouzel.responses.output_items import new_id
from ouzel.wire.offered_tools import ClientName, OfferedTool

_REDACTED = "<redacted>"
_SECRETS = ("headers", "authorization")
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


class McpKind:
    types = frozenset({"mcp"})

    def __init__(
        self,
        configured: Mapping[str, McpServer],
        allowed: AllowedHosts,
        *,
        timeout_s: float,
        max_answer_bytes: int,
        max_programs: int = 16,
    ) -> None:
        """`configured` are the servers that the operator names, by label.

        At most `max_programs` of their programs run at the same time.
        """
        self._programs = asyncio.Semaphore(max_programs)
        self._configured = configured
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes

    def check(self, entry: JsonObject, path: str) -> None:
        self._server(decode_entry(entry, McpEntry, path), path)

    def show(self, entry: JsonObject) -> JsonObject:
        shown = self.keep(entry)
        if isinstance(url := shown.get("server_url"), str):
            parts = urlsplit(url)
            if parts.path.strip("/"):
                shown["server_url"] = f"{parts.scheme}://{parts.netloc}/{_REDACTED}"
        return shown

    def keep(self, entry: JsonObject) -> JsonObject:
        kept = {name: value for name, value in entry.items() if name not in _SECRETS}
        if isinstance(url := kept.get("server_url"), str):
            parts = urlsplit(url)
            host = parts.netloc.rpartition("@")[2]
            kept["server_url"] = urlunsplit((parts.scheme, host, parts.path, "", ""))
        return kept

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> "McpTools":
        decoded = decode_entry(entry, McpEntry, path)
        server = self._server(decoded, path)
        is_operators = decoded.server_url is None
        session = McpSession(
            server,
            trust_server(server) if is_operators else self._allowed,
            timeout_s=self._timeout_s,
            max_answer_bytes=self._max_answer_bytes,
            programs=self._programs,
        )
        try:
            items = [item for fields in context.items if (item := read_hosted_item(fields))]
            listed = _find_list(items, decoded.server_label)
            first: list[AnyHostedItem] = []
            if listed is None:
                listed = [_list_tool(tool) for tool in await session.list_tools()]
                first.append(_make_list(decoded, listed))
            return McpTools(
                session,
                decoded,
                path,
                listed=listed,
                first_items=first,
                first_calls=_find_approved(items, decoded),
            )
        except BaseException:
            await session.close()
            raise

    def _server(self, entry: McpEntry, path: str) -> McpServer:
        """Returns the server of an entry. Raises InvalidRequest if the client may not name it."""
        for name in ("connector_id", "tunnel_id"):
            if getattr(entry, name) is not None:
                raise InvalidRequest(
                    "is not supported by this server (use server_url)", field=f"{path}.{name}"
                )
        headers = dict(entry.headers or {})
        if entry.authorization is not None:
            headers["Authorization"] = f"Bearer {entry.authorization}"
        if entry.server_url is not None:
            field = f"{path}.server_url"
            if not entry.server_url.startswith(("http://", "https://")):
                raise InvalidRequest("must begin with http:// or https://", field=field)
            check_host(read_target(entry.server_url, field), self._allowed, field)
            return RemoteServer(entry.server_label, entry.server_url, headers)
        configured = self._configured.get(entry.server_label)
        if configured is None:
            names = ", ".join(sorted(self._configured)) or "none"
            raise InvalidRequest(
                f"is required unless server_label is one of the servers of this server's "
                f"mcp_servers: {names}, given {entry.server_label!r}",
                field=f"{path}.server_url",
            )
        if headers:
            raise InvalidRequest(
                "needs server_url: the operator has configured this server",
                field=f"{path}.{'headers' if entry.headers else 'authorization'}",
            )
        return configured


class McpTools:
    """The tools of one MCP server, open for one response."""

    def __init__(
        self,
        session: McpSession,
        entry: McpEntry,
        path: str,
        *,
        listed: Sequence[ListedMcpTool],
        first_items: Sequence[AnyHostedItem],
        first_calls: Sequence[AnyHostedItem],
    ) -> None:
        self.first_items = first_items
        self.first_calls = first_calls
        self._session = session
        self._entry = entry
        self._tools = {tool.name: tool for tool in listed if entry.allows(tool)}
        self.functions = [
            HostedFunction(_offer(tool, entry, path), is_repeatable=False)
            for tool in self._tools.values()
        ]

    def begin_call(self, call: ModelCall) -> AnyHostedItem:
        name, label = call.name.name, self._entry.server_label
        tool = self._tools[name]
        if self._entry.needs_approval(tool):
            return McpApprovalRequest(
                id=new_id(McpApprovalRequest.id_prefix),
                name=name,
                server_label=label,
                arguments=call.arguments,
            )
        item = McpCall(
            id=new_id(McpCall.id_prefix),
            name=name,
            server_label=label,
            arguments=call.arguments,
            status="in_progress",
        )
        fault = _find_fault(call.arguments)
        return item if fault is None else item.fail(fault)

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        assert isinstance(item, McpCall)
        fault = _find_fault(item.arguments)
        if fault is not None:
            return CallResult(item.fail(fault))
        arguments = msgspec.json.decode(item.arguments or "{}", type=JsonObject)
        result = await self._session.call(item.name, arguments)
        if result.is_error:
            return CallResult(item.fail(result.text or "The tool failed without a reason."))
        return CallResult(replace(item, status="completed", output=result.text))

    async def close(self) -> None:
        await self._session.close()


def _find_fault(arguments: str) -> str | None:
    """Returns the reason why the arguments of a call cannot be sent; None if they can."""
    try:
        msgspec.json.decode(arguments or "{}", type=JsonObject)
    except msgspec.MsgspecError as error:
        return f"The arguments must be a JSON object: {error}"
    return None


def _find_list(items: Iterable[AnyHostedItem], label: str) -> Sequence[ListedMcpTool] | None:
    """Returns the tools of the newest list of the server among earlier items."""
    lists = [
        item for item in items if isinstance(item, McpListTools) and item.server_label == label
    ]
    return lists[-1].tools if lists and lists[-1].error is None else None


def _find_approved(items: Sequence[AnyHostedItem], entry: McpEntry) -> list[AnyHostedItem]:
    """Returns running calls for the approval requests that are approved and have no call yet."""
    approved = {
        item.approval_request_id
        for item in items
        if isinstance(item, McpApprovalResponse) and item.approve
    }
    called = {item.approval_request_id for item in items if isinstance(item, McpCall)}
    return [
        McpCall(
            id=new_id(McpCall.id_prefix),
            name=item.name,
            server_label=item.server_label,
            arguments=item.arguments,
            status="in_progress",
            approval_request_id=item.id,
        )
        for item in items
        if isinstance(item, McpApprovalRequest)
        and item.server_label == entry.server_label
        and item.id in approved - called
    ]


def _list_tool(tool: McpTool) -> ListedMcpTool:
    return ListedMcpTool(tool.name, tool.description, tool.input_schema, tool.annotations)


def _make_list(entry: McpEntry, listed: Sequence[ListedMcpTool]) -> McpListTools:
    tools = [tool for tool in listed if entry.allows(tool)]
    return McpListTools(
        id=new_id(McpListTools.id_prefix), server_label=entry.server_label, tools=tools
    )


def _offer(tool: ListedMcpTool, entry: McpEntry, path: str) -> OfferedTool:
    return OfferedTool(
        ClientName(tool.name, entry.server_label),
        path,
        tool.description,
        tool.input_schema,
        hosted_type="mcp",
    )
