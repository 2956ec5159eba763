"""Runs the tools of MCP servers: entries of `tools` with the type `mcp`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec.structs import replace

from ouzel.config.media_hosts import AllowedHosts
from ouzel.hosted_tools.mcp.contents import is_function_name
from ouzel.hosted_tools.mcp.records import McpError, McpServer, McpTool
from ouzel.hosted_tools.mcp.server_access import McpServers, ServerAccess
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
from ouzel.responses.hosted.mcp_entry import McpEntry, find_server
from ouzel.responses.output_items import new_id
from ouzel.wire.offered_tools import ClientName, OfferedTool

_REDACTED = "<redacted>"
_SECRETS = ("headers", "authorization")
_MAX_ERROR = 10_000  # characters of a tool's own error


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
        max_list_age_s: float = 0.0,
        program_idle_s: float = 0.0,
    ) -> None:
        """`configured` are the servers that the operator names, by label.

        At most `max_programs` of their programs run at the same time, an idle one for
        `program_idle_s`. Lists of tools are used again for `max_list_age_s`.
        """
        self._configured = configured
        self._allowed = allowed
        self._servers = McpServers(
            allowed,
            timeout_s=timeout_s,
            max_answer_bytes=max_answer_bytes,
            max_programs=max_programs,
            max_list_age_s=max_list_age_s,
            program_idle_s=program_idle_s,
        )

    def check(self, entry: JsonObject, path: str) -> None:
        self._find_server(decode_entry(entry, McpEntry, path), path)

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
        access = self._servers.access(self._find_server(decoded, path), context.key_id)
        try:
            items = [item for fields in context.items if (item := read_hosted_item(fields))]
            listed = _find_list(items, decoded)
            first: list[AnyHostedItem] = []
            if listed is None:
                listed = [_list_tool(tool) for tool in await _list_tools(access)]
                first.append(_make_list(decoded, listed))
            return McpTools(
                access,
                decoded,
                path,
                listed=listed,
                first_items=first,
                first_calls=_find_approved(items, decoded),
            )
        except BaseException:
            access.close()
            raise

    async def close(self) -> None:
        """Waits until all sessions are closed and their programs have ended."""
        await self._servers.close()

    def _find_server(self, entry: McpEntry, path: str) -> McpServer:
        return find_server(entry, path, self._configured, self._allowed)


class McpTools:
    """The tools of one MCP server, open for one response."""

    def __init__(
        self,
        access: ServerAccess,
        entry: McpEntry,
        path: str,
        *,
        listed: Sequence[ListedMcpTool],
        first_items: Sequence[AnyHostedItem],
        first_calls: Sequence[AnyHostedItem],
    ) -> None:
        self.first_items = first_items
        self.first_calls = first_calls
        self._access = access
        self._entry = entry
        self._tools = {tool.name: tool for tool in listed if entry.allows(tool)}
        self.functions = [
            HostedFunction(tool, is_repeatable=False)
            for tool in _offer(list(self._tools.values()), entry, path)
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
        result = await self._access.call(item.name, arguments)
        if result.is_error:
            text = result.text[:_MAX_ERROR] or "The tool failed without a reason."
            return CallResult(item.fail(text))
        return CallResult(replace(item, status="completed", output=result.text))

    async def close(self) -> None:
        self._access.close()


async def _list_tools(access: ServerAccess) -> Sequence[McpTool]:
    try:
        return await access.list_tools()
    except McpError as error:
        raise McpError(str(error), param="tools") from error  # the field that OpenAI names


def _find_fault(arguments: str) -> str | None:
    """Returns the reason why the arguments of a call cannot be sent; None if they can."""
    try:
        msgspec.json.decode(arguments or "{}", type=JsonObject)
    except msgspec.MsgspecError as error:
        return f"The arguments must be a JSON object: {error}"
    return None


def _find_list(items: Iterable[AnyHostedItem], entry: McpEntry) -> Sequence[ListedMcpTool] | None:
    """Returns the tools of the newest list of the server among earlier items.

    Returns None if there is no list, or if it lacks tools that the entry allows by name: a list has
    the tools that the entry of its request allowed.
    """
    lists = [
        item
        for item in items
        if isinstance(item, McpListTools) and item.server_label == entry.server_label
    ]
    if not lists or lists[-1].error is not None:
        return None
    # Clients may have changed the items.
    tools = [tool for tool in lists[-1].tools if is_function_name(tool.name)]
    return None if entry.needs_more_than({tool.name for tool in tools}) else tools


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


def _offer(tools: Sequence[ListedMcpTool], entry: McpEntry, path: str) -> Iterator[OfferedTool]:
    for position, tool in enumerate(tools):
        description = tool.description
        # The model sees no servers: the description of a server goes to its first tool.
        if position == 0 and entry.server_description:
            head = f"[{entry.server_label}: {entry.server_description}]"
            description = f"{head}\n{description}" if description else head
        yield OfferedTool(
            ClientName(tool.name, entry.server_label),
            path,
            description,
            tool.input_schema,
            hosted_type="mcp",
        )
