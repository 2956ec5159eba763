"""The tools of one response that this server runs: found by name, run within limits."""

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from ouzel.errors import STOPS, OuzelError
from ouzel.responses.hosted.citations import Source, read_sources
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import (
    CallResult,
    HostedFunction,
    HostedKinds,
    HostedTool,
    JsonObject,
    ModelCall,
    OpeningContext,
)
from ouzel.wire.offered_tools import ClientName, HostedOffer

logger = logging.getLogger(__name__)

_CUT = "\n[The rest of this output, {num_chars} characters, is left out.]"
_FAILED = "The tool failed for a reason that is not the fault of this call."
_NONE_LEFT = "This call was not run: no more calls of this tool are allowed in this answer."
_UNKNOWN_EFFECT = (
    "The server stopped while this call ran. It is unknown whether the call had an effect; it was "
    "not run again."
)


class OpenedTools:
    """The opened tools of a response; `close` must be called once."""

    def __init__(
        self,
        tools: Sequence[HostedTool],
        kinds: HostedKinds,
        *,
        max_calls: int,
        sources: dict[int, Source],
        is_offered: Callable[[ClientName], bool],
    ) -> None:
        """`max_calls` limits the calls of the response; `sources` come from earlier items.

        The model may call the functions for whose names `is_offered` is true.
        """
        self.tools = tools
        offered = [
            (tool, function)
            for tool in tools
            for function in tool.functions
            if is_offered(function.offered.name)
        ]
        functions = tuple(function.offered for _, function in offered)
        self.offer = HostedOffer(kinds.types, functions, kinds.hints)
        self.first_items = [item for tool in tools for item in tool.first_items]
        self.first_calls = [item for tool in tools for item in tool.first_calls]
        self.num_left = max_calls
        self._functions: dict[ClientName, tuple[HostedTool, HostedFunction]] = {
            function.offered.name: (tool, function) for tool, function in offered
        }
        self._limits = kinds
        self.sources = sources
        self._numbers = itertools.count(1 + max(sources, default=0))

    @property
    def names(self) -> frozenset[ClientName]:
        """Returns the names of the functions whose calls this server runs."""
        return frozenset(self._functions)

    def begin(self, calls: Iterable[ModelCall]) -> list[AnyHostedItem]:
        """Returns the items of the calls that the limit still allows; further calls are dropped."""
        items: list[AnyHostedItem] = []
        for call in calls:
            if self.num_left == 0:
                logger.info("dropped a call of %r: no calls are left", call.name.name)
                continue
            self.num_left -= 1
            tool, _ = self._functions[call.name]
            items.append(tool.begin_call(call))
        return items

    def refuse(self, call: ModelCall) -> AnyHostedItem:
        """Returns the ended item of a call that is not run, because no calls are left.

        It counts as a call too: a model that calls again and again comes to an end.
        """
        self.num_left = max(self.num_left - 1, 0)
        tool, _ = self._functions[call.name]
        item = tool.begin_call(call)
        return item.fail(_NONE_LEFT) if item.is_running else item

    async def run(self, item: AnyHostedItem) -> CallResult:
        """Runs the call of a running item. Every failure of the tool becomes an ended item."""
        tool = self._find_tool(item)
        if tool is None:
            return CallResult(item.fail("The request has no such tool any more."))
        timeout_s = self._limits.call_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                result = await tool.run(item, self._numbers)
        except TimeoutError:
            return CallResult(item.fail(f"The call was ended after {timeout_s:g} seconds."))
        except OuzelError as error:
            return CallResult(item.fail(str(error)))
        except STOPS:
            raise
        except Exception:
            # Broad: a fault of a tool must not end the response.
            logger.exception("unexpected error of a tool")
            return CallResult(item.fail(_FAILED))
        for each in (result.item, *result.further):
            sources = each.sources if isinstance(each.sources, list) else []
            self.sources.update((source.number, source) for source in sources)
        return CallResult(self._shorten(result.item), tuple(map(self._shorten, result.further)))

    def resume(self, item: AnyHostedItem) -> AnyHostedItem:
        """Returns the item of a call that a stopped server had begun: running again, or failed."""
        found = self._functions.get(ClientName(*item.called_name()))
        if found is not None and found[1].is_repeatable:
            return item
        return item.fail(_UNKNOWN_EFFECT)

    def count(self, items: Iterable[object]) -> None:
        """Subtracts the calls of an earlier run of the response from the calls that are left."""
        num_calls = sum(
            isinstance(item, AnyHostedItem) and item.exchange() is not None for item in items
        )
        self.num_left = max(self.num_left - num_calls, 0)

    async def close(self) -> None:
        async with AsyncExitStack() as stack:
            for tool in self.tools:
                stack.push_async_callback(tool.close)

    def _find_tool(self, item: AnyHostedItem) -> HostedTool | None:
        found = self._functions.get(ClientName(*item.called_name()))
        return None if found is None else found[0]

    def _shorten(self, item: AnyHostedItem) -> AnyHostedItem:
        limit = self._limits.max_output_chars
        if not isinstance(item.output, str) or len(item.output) <= limit:
            return item
        cut = item.output[:limit] + _CUT.format(num_chars=len(item.output) - limit)
        return replace(item, output=cut)


async def open_tools(
    kinds: HostedKinds,
    entries: Sequence[tuple[str, JsonObject]],
    context: OpeningContext,
    *,
    max_calls: int | None,
    is_offered: Callable[[ClientName], bool] = lambda _: True,
) -> OpenedTools:
    """Opens the entries of `tools` that this server runs; each has its path before it.

    The model may call the functions for whose names `is_offered` is true.

    Raises the errors of `HostedKind.open`; the tools that were opened before are closed then.
    """
    sources = read_sources(context.items)
    context = dataclasses.replace(context, sources=sources)
    tools = await _open_together(kinds, entries, context)
    return OpenedTools(
        tools,
        kinds,
        max_calls=min(max_calls or kinds.max_calls, kinds.max_calls),
        sources=sources,
        is_offered=is_offered,
    )


async def _open_together(
    kinds: HostedKinds, entries: Sequence[tuple[str, JsonObject]], context: OpeningContext
) -> list[HostedTool]:
    """Opens all entries at the same time; if one fails, closes the others and raises its error."""
    opening = [asyncio.create_task(_open(kinds, *entry, context)) for entry in entries]
    try:
        return list(await asyncio.gather(*opening))
    except BaseException:
        for task in opening:
            task.cancel()
        for ended in await asyncio.gather(*opening, return_exceptions=True):
            if not isinstance(ended, BaseException):
                await ended.close()
        raise


async def _open(
    kinds: HostedKinds, path: str, entry: JsonObject, context: OpeningContext
) -> HostedTool:
    kind = kinds.find(entry.get("type"))
    assert kind is not None, path
    return await kind.open(entry, path, context)
