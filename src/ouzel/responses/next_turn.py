"""Makes the requests of the turns that follow the calls of tools which this server runs."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from ouzel.generation import GenerationOptions, GenerationRequest
from ouzel.responses.checked_body import CheckedBody
from ouzel.responses.context import Context
from ouzel.responses.input_items import InputItem
from ouzel.responses.output_items import OutputItem
from ouzel.responses.request import ResponsesRequest
from ouzel.wire.offered_tools import ClientName
from ouzel.wire.tools import AllowedTools, Choice
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
        options = self._options(num_used_tokens, may_call=may_call)
        if options is None:
            return None
        chat = dataclasses.replace(self.checked_body.chat, options=options)
        checked_body = dataclasses.replace(self.checked_body, chat=chat)
        make = partial(self._make, checked_body, output)
        return await self.threads.run(make, self.num_bytes)

    def _options(self, num_used_tokens: int, *, may_call: bool) -> GenerationOptions | None:
        options = self.checked_body.options
        if options.max_tokens is not None:
            if options.max_tokens <= num_used_tokens:
                return None
            options = replace(options, max_tokens=options.max_tokens - num_used_tokens)
        use = options.tool_use
        if may_call or use is None:
            return options
        names = self.checked_body.chat.tool_names
        tools = [tool for tool in use.tools if names.for_client(tool.name) not in self.hosted_names]
        return replace(options, tool_use=replace(use, tools=tuple(tools), are_all=False))

    def _make(self, checked_body: CheckedBody, output: Sequence[OutputItem]) -> GenerationRequest:
        made = [
            InputItem(msgspec.to_builtins(item), "output") for item in output if _is_whole(item)
        ]
        later = dataclasses.replace(self.context, output=made)
        return self.make_request(checked_body, later)


def relax_choice(fields: ResponsesRequest) -> ResponsesRequest:
    """Returns the fields of the turns after the first, in which no call is demanded.

    Otherwise the model could never answer.
    """
    choice: Choice | None = fields.tool_choice
    match choice:
        case None | "none" | "auto":
            return fields
        case AllowedTools():
            inner = choice.allowed_tools
            relaxed = (
                replace(choice, mode="auto")
                if inner is None
                else replace(choice, allowed_tools=replace(inner, mode="auto"))
            )
            return replace(fields, tool_choice=relaxed)
        case _:
            return replace(fields, tool_choice=None)


def _is_whole(item: OutputItem) -> bool:
    """Tells whether the model reads the item; not an item that a stopped server has left open."""
    return getattr(item, "status", "completed") in ("completed", "failed")
