"""Makes the requests of the turns that follow the calls of tools which this server runs."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from ouzel.generation import GenerationRequest
from ouzel.responses.checked_body import CheckedBody
from ouzel.responses.context import Context
from ouzel.responses.hosted.later_turn import limit_later_turn
from ouzel.responses.input_items import InputItem
from ouzel.responses.output_items import OutputItem
from ouzel.wire.offered_tools import ClientName
from ouzel.worker_threads import PreparationThreads

# Renders a body with these items, and returns the request of the turn.
MakeRequest = Callable[[CheckedBody, Context], GenerationRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTurn:
    """Renders the prompt again, with the output of the response up to now."""

    checked_body: CheckedBody  # its choice of tools no longer demands a call
    context: Context
    hosted_names: Collection[ClientName]
    make_request: MakeRequest
    threads: PreparationThreads
    num_bytes: int  # size of the body and the stored items

    async def request(
        self, output: Sequence[OutputItem], *, num_used_tokens: int, may_call: bool
    ) -> GenerationRequest | None:
        """Returns the request of the next turn; None if no tokens are left for it.

        `num_used_tokens` is the number of tokens that earlier turns have generated. Without
        `may_call` the model cannot call the tools that this server runs. Raises InvalidRequest if
        the items do not fit into the context of the model.
        """
        chat = self.checked_body.chat
        options = limit_later_turn(
            chat.options,
            chat.tool_names,
            self.hosted_names,
            num_used_tokens=num_used_tokens,
            may_call=may_call,
        )
        if options is None:
            return None
        checked_body = dataclasses.replace(
            self.checked_body, chat=dataclasses.replace(chat, options=options)
        )
        make = partial(self._make, checked_body, output)
        return await self.threads.run(make, self.num_bytes)

    def _make(self, checked_body: CheckedBody, output: Sequence[OutputItem]) -> GenerationRequest:
        made = [
            InputItem(msgspec.to_builtins(item), "output") for item in output if _is_whole(item)
        ]
        later = dataclasses.replace(self.context, output=made)
        return self.make_request(checked_body, later)


def _is_whole(item: OutputItem) -> bool:
    """Tells whether the model reads the item; not an item that a stopped server has left open."""
    return getattr(item, "status", "completed") in ("completed", "failed")
