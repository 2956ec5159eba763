"""Writes the calls that this server runs as blocks, and finds the citations of their results."""

from collections.abc import Callable, Iterator, Mapping

from ouzel.api.anthropic.call_ids import show_call_id
from ouzel.api.anthropic.hosted_blocks import (
    AnsweredMcpUse,
    AnsweredServerUse,
    HostedResult,
    HostedUse,
    PageCitation,
    list_texts,
    make_result,
)
from ouzel.hosted_chats.events import CallEnded
from ouzel.responses.hosted.citations import CitationFinder, Source, UrlCitation
from ouzel.responses.hosted.web_fetch import WebFetchCall
from ouzel.responses.hosted.web_search import WebSearchCall
from ouzel.wire.offered_tools import ClientName

_CITED_CHARS = 150  # Anthropic's limit


class HostedWriting:
    """Knows the calls and sources of one answer."""

    def __init__(
        self, find_name: Callable[[str], ClientName | None], sources: Mapping[int, Source]
    ) -> None:
        """`find_name` returns the client's name of a function that this server runs, or None.

        Its argument is the model's name. Calls may add `sources` while the answer is written.
        """
        self.num_searches = 0
        self.num_fetches = 0
        self._find_name = find_name
        self._sources = sources
        self._texts: dict[str, str] = {}  # texts of the pages, by address
        self._block_ids: dict[str, str] = {}  # ids of the blocks of calls, by call id
        self._finder = CitationFinder(sources)

    def begin(self, call_id: str, model_name: str) -> HostedUse | None:
        """Returns the block of a call without its input; None for a call of the client."""
        name = self._find_name(model_name)
        if name is None:
            return None
        shown_id = show_call_id(call_id)
        use: HostedUse
        if name.namespace is None:
            use = AnsweredServerUse(f"srv{shown_id}", name.name, {})
        else:
            use = AnsweredMcpUse(f"mcp{shown_id}", name.name, name.namespace, {})
        self._block_ids[call_id] = use.id
        return use

    def end(self, ended: CallEnded) -> HostedResult:
        """Returns the result of a call that has ended."""
        item = ended.item
        if isinstance(item, WebSearchCall) and not ended.is_over_limit:
            self.num_searches += 1
        if isinstance(item, WebFetchCall) and not ended.is_over_limit:
            self.num_fetches += 1
        self._texts.update(list_texts(item))
        block_id = self._block_ids[ended.call_id]
        return make_result(block_id, item, is_over_limit=ended.is_over_limit)

    def open_text(self) -> None:
        """Begins a text block: markers do not span two blocks."""
        self._finder = CitationFinder(self._sources)

    def cite(self, text: str) -> Iterator[PageCitation]:
        """Yields the citations that the next text of the block completes."""
        for found in self._finder.add(text):
            if isinstance(found, UrlCitation):
                cited = self._texts.get(found.url, "")[:_CITED_CHARS]
                yield PageCitation(found.url, found.title, found.url, cited)
