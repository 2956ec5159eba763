"""Runs the calls of a response's hosted tools, between the turns of the model.

1.  The items of all calls of a turn are shown first, and stored if the response is made in the
    background: a server that takes the response over then knows which calls had begun.
2.  The calls run at the same time. Each ended item is shown at once.
3.  Cancelling the response cancels its calls.
"""

import asyncio
from collections.abc import Sequence
from itertools import takewhile

from ouzel.generation import Generation, SuccessiveGenerations
from ouzel.responses.event_log import EventLog
from ouzel.responses.hosted.finished_call import finish_call
from ouzel.responses.hosted.item_base import HostedItem
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import CallResult
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.responses.next_turn import NextTurn
from ouzel.responses.output_items import OutputItem, WrittenItem
from ouzel.responses.preparer import PreparedResponse
from ouzel.responses.response_builder import ResponseBuilder
from ouzel.responses.stored_progress import StoredProgress


class ToolLoop:
    def __init__(
        self,
        prepared: PreparedResponse,
        tools: OpenedTools,
        next_turn: NextTurn,
        generations: SuccessiveGenerations,
        *,
        log: EventLog,
        progress: StoredProgress | None,
        key_id: str | None,
    ) -> None:
        """`progress` is None if the response is not stored."""
        self.tools = tools
        self._prepared = prepared
        self._next_turn = next_turn
        self._generations = generations
        self._log = log
        self._progress = progress
        self._key_id = key_id
        self._unread: frozenset[str] = frozenset()  # ids of items that the model does not read

    @property
    def begins_with_calls(self) -> bool:
        """Tells whether calls come before the first turn of the model."""
        return bool(self.tools.first_calls)

    async def run_first_calls(self, builder: ResponseBuilder) -> None:
        await self._run(self.tools.first_calls, builder)

    async def resume_calls(self, builder: ResponseBuilder) -> None:
        """Ends the calls that a stopped server had begun: runs them again, or fails them.

        Items that the model wrote after the last call belong to a turn that did not come to its
        end, perhaps before another call. The model takes this turn again, and does not read them.
        """
        self.tools.count(builder.items)
        self._unread = _list_unfinished_turn(builder.items)
        resumed = [self.tools.resume(item) for item in builder.running]
        for item in resumed:
            if not item.is_running:
                self._log.add(builder.end_hosted(CallResult(item)))
        await self._finish([item for item in resumed if item.is_running], builder)

    async def run_calls(self, builder: ResponseBuilder) -> bool:
        """Runs the calls of the last turn; returns False if no call was allowed to run."""
        calls = builder.take_calls()
        items = self.tools.begin(calls)
        await self._run(items, builder)
        return bool(items)

    async def make_turn(self, builder: ResponseBuilder) -> Generation | None:
        """Returns the generation of the next turn; None if the response ends here."""
        if builder.waits_for_client:
            return None
        request = await self._next_turn.request(
            [item for item in builder.items if item.id not in self._unread],
            num_used_tokens=self._generations.usage().completion_tokens,
            may_call=self.tools.num_left > 0,
        )
        if request is None:
            builder.cut()
            return None
        prepared = self._prepared
        generation = Generation(request, prepared.model, prepared.metrics, key_id=self._key_id)
        self._generations.add(generation)
        return generation

    async def _run(self, items: Sequence[AnyHostedItem], builder: ResponseBuilder) -> None:
        self._log.add([event for item in items for event in builder.add_hosted(item)])
        if items and self._progress is not None and self._prepared.response.background:
            is_ours = await self._progress.keep(lambda: builder.snapshot)
            if not is_ours:
                raise asyncio.CancelledError
        await self._finish([item for item in items if item.is_running], builder)

    async def _finish(self, items: Sequence[AnyHostedItem], builder: ResponseBuilder) -> None:
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(self._finish_call(item, builder))

    async def _finish_call(self, item: AnyHostedItem, builder: ResponseBuilder) -> None:
        result = await finish_call(item, self.tools, self._prepared.metrics)
        self._log.add(builder.end_hosted(result))


def _list_unfinished_turn(items: Sequence[OutputItem]) -> frozenset[str]:
    """Returns the ids of the items that the model wrote after the last call that was run."""
    later = takewhile(lambda item: not isinstance(item, HostedItem), reversed(items))
    return frozenset(item.id for item in later if isinstance(item, WrittenItem))
