"""Defines the interface of the tools that this server runs.

A `HostedKind` knows one kind of entry in the field `tools`. For each request it opens a
`HostedTool`, which has the functions that the model may call and runs their calls.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ouzel.responses.hosted.citations import Source
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.wire.offered_tools import ClientName, OfferedTool

JsonObject = dict[str, object]
Entry = tuple[str, JsonObject]  # the path of an entry of `tools`, and the entry


@dataclass(frozen=True, slots=True)
class HostedFunction:
    """A function by which the model calls a tool that this server runs."""

    offered: OfferedTool
    # A call may run twice without harm, as a search. False: a call that a stopped server had begun
    # is not run again, and the model reads that its effect is unknown.
    is_repeatable: bool


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call as the model wrote it."""

    name: ClientName
    arguments: str  # JSON, or any text if the model made a mistake


@dataclass(frozen=True, slots=True)
class CallResult:
    """The ended item of a call, and items that follow it (the output of a shell)."""

    item: AnyHostedItem
    further: tuple[AnyHostedItem, ...] = ()


@dataclass(frozen=True, slots=True)
class OpeningContext:
    """Facts about the request for which a tool is opened."""

    key_id: str | None
    include: frozenset[str]  # the names in the field `include`
    items: Sequence[JsonObject]  # all items before the response: the earlier ones and the input
    sources: Mapping[int, Source] = field(default_factory=dict)  # grows with the calls


class HostedTool(Protocol):
    """One entry of `tools`, opened for one response."""

    @property
    def functions(self) -> Sequence[HostedFunction]:
        """Returns the functions that the model may call."""
        ...

    @property
    def first_items(self) -> Sequence[AnyHostedItem]:
        """Returns ended items that begin the output, such as the tools of an MCP server."""
        ...

    @property
    def first_calls(self) -> Sequence[AnyHostedItem]:
        """Returns running items of calls that the input asks for: the client has approved them."""
        ...

    def begin_call(self, call: ModelCall) -> AnyHostedItem:
        """Returns the running item of a call, or an item that waits for the client.

        Arguments that cannot be read give an ended item, in which the model reads the fault.
        """
        ...

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        """Runs the call of a running item; `numbers` gives the next numbers for sources.

        A failure of the tool is an ended item too. Raises OuzelError for a failure whose text may
        be shown. The loop limits the time and shortens long outputs.
        """
        ...

    async def close(self) -> None:
        """Frees everything that the tool holds; called once, at the end of the response."""
        ...


class HostedKind(Protocol):
    """Opens the tools of one kind; one object serves all requests."""

    @property
    def types(self) -> frozenset[str]:
        """Returns the types of entries in the field `tools`."""
        ...

    def check(self, entry: JsonObject, path: str) -> None:
        """Raises InvalidRequest for an entry that is wrong; does no input or output."""
        ...

    def show(self, entry: JsonObject) -> JsonObject:
        """Returns the entry without secrets, as the response object repeats it."""
        ...

    def keep(self, entry: JsonObject) -> JsonObject:
        """Returns the entry without secrets, as it is stored for a later run of the request."""
        ...

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> HostedTool:
        """Opens a checked entry. Raises InvalidRequest, or another OuzelError with a status."""
        ...

    async def close(self) -> None:
        """Frees everything that outlives single responses; called once, when the server stops."""
        ...


@dataclass(frozen=True, slots=True)
class HostedKinds:
    """All kinds of tools that this server runs, and hints for tools that are turned off."""

    kinds: Sequence[HostedKind] = ()
    # maps the type of a tool that is turned off to a hint for the operator
    hints: Mapping[str, str] = field(default_factory=dict)
    call_timeout_s: float = 60.0
    max_output_chars: int = 100_000
    max_calls: int = 128  # limit for one response
    # entries that every chat completion gets, and whether chat completions may have entries
    chat_entries: Sequence[JsonObject] = ()
    takes_chat_entries: bool = False
    # further kinds, whose results only Anthropic's messages can show
    message_kinds: Sequence[HostedKind] = ()
    # entries of `tools` that every client may send; clients can show them to people
    offers: Sequence[JsonObject] = ()
    # clients may name MCP servers by their URLs
    takes_mcp_urls: bool = False

    def with_kind(self, kind: HostedKind) -> "HostedKinds":
        """Returns these kinds and another one."""
        return replace(self, kinds=(*self.kinds, kind))

    def for_messages(self) -> "HostedKinds":
        """Returns the kinds that Anthropic's messages can have."""
        return replace(self, kinds=(*self.kinds, *self.message_kinds), message_kinds=())

    @property
    def types(self) -> frozenset[str]:
        return frozenset[str]().union(*(kind.types for kind in self.kinds))

    def find(self, type: object) -> HostedKind | None:
        return next((kind for kind in self.kinds if type in kind.types), None)

    def show(self, entry: JsonObject) -> JsonObject:
        """Returns an entry of `tools` without secrets; other tools are returned unchanged."""
        kind = self.find(entry.get("type"))
        return entry if kind is None else kind.show(entry)

    def keep(self, entry: JsonObject) -> JsonObject:
        """Returns an entry of `tools` as it is stored; other tools are returned unchanged."""
        kind = self.find(entry.get("type"))
        return entry if kind is None else kind.keep(entry)

    async def close(self) -> None:
        await asyncio.gather(*(kind.close() for kind in (*self.kinds, *self.message_kinds)))


NO_HOSTED_KINDS = HostedKinds()
