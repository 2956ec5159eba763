"""A tool that the server runs, for tests: a search whose results the test chooses."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from ouzel.errors import InvalidRequest, OuzelError
from ouzel.responses.hosted.citations import Source, mark_source
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import (
    CallResult,
    HostedFunction,
    HostedKinds,
    JsonObject,
    ModelCall,
    OpeningContext,
)
from ouzel.responses.hosted.web_search import SEARCH, SearchAction, WebSearchCall
from ouzel.responses.output_items import new_id
from ouzel.wire.offered_tools import ClientName, OfferedTool

_PARAMETERS: JsonObject = {"type": "object", "properties": {"query": {"type": "string"}}}


@dataclass
class SearchKind:
    """Opens searches. `find` returns the text of a query; the test may replace it."""

    types: frozenset[str] = frozenset({"web_search", "web_search_preview"})
    find: Callable[[str], str] = lambda query: f"found {query}"
    is_repeatable: bool = True
    # Queries that have begun, in order.
    queries: list[str] = field(default_factory=list)
    num_open: int = 0
    may_end: bool = True  # False: queries wait until the test sets it to True

    def check(self, entry: JsonObject, path: str) -> None:
        if "nonsense" in entry:
            raise InvalidRequest("must not be given", field=f"{path}.nonsense")

    def show(self, entry: JsonObject) -> JsonObject:
        return {name: value for name, value in entry.items() if name != "secret"}

    def keep(self, entry: JsonObject) -> JsonObject:
        return self.show(entry)

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> "Search":
        self.num_open += 1
        return Search(self, path, str(entry["type"]))

    async def close(self) -> None:
        pass


class Search:
    first_items: tuple[AnyHostedItem, ...] = ()
    first_calls: tuple[AnyHostedItem, ...] = ()

    def __init__(self, kind: SearchKind, path: str, type: str) -> None:
        self._kind = kind
        offered = OfferedTool(ClientName(SEARCH), path, "Searches.", _PARAMETERS, hosted_type=type)
        self.functions = (HostedFunction(offered, is_repeatable=kind.is_repeatable),)

    def begin_call(self, call: ModelCall) -> WebSearchCall:
        query = str(json.loads(call.arguments)["query"])
        return WebSearchCall(
            id=new_id("ws"), status="in_progress", action=SearchAction(query, [query])
        )

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        assert isinstance(item, WebSearchCall) and isinstance(item.action, SearchAction)
        query = item.action.query
        self._kind.queries.append(query)
        while not self._kind.may_end:
            await asyncio.sleep(0.001)
        if query == "fault":
            raise RuntimeError("a detail for the log")
        if query == "refusal":
            raise OuzelError("the search engine is down")
        number = next(numbers)
        source = Source(number=number, title=query.upper(), url=f"https://example.org/{query}")
        text = f"{self._kind.find(query)} {mark_source(number)}"
        ended = replace(item, status="completed", output=text, sources=[source])
        return CallResult(ended)

    async def close(self) -> None:
        self._kind.num_open -= 1


def search_kinds(kind: SearchKind, *, max_calls: int = 128) -> HostedKinds:
    return HostedKinds((kind,), max_calls=max_calls, max_output_chars=2000)
