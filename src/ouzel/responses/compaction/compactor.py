"""Summarises a context that has grown past the threshold of `context_management`.

The first output item is then a `compaction` item. It replaces the whole earlier conversation,
except for leading system messages. The item repeats the last user message word for word; the
images of that message stay beside it while they are in the context. A context without a message
before the last user message is not summarised.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from ouzel.errors import ContextLengthExceeded
from ouzel.generation import ServedModel
from ouzel.responses.checked_body import CheckedBody
from ouzel.responses.compaction.summariser import Summariser
from ouzel.responses.context import Context
from ouzel.responses.input_items import InputMessage, count_leading, read_messages
from ouzel.responses.items.compaction_item import CompactionItem, remove_summary, text_for_model
from ouzel.responses.items.message_content import join_texts
from ouzel.responses.items.packed_text import CONTEXT
from ouzel.responses.output_items import new_id
from ouzel.responses.prompt import render_input
from ouzel.wire.newest_turns import room_for_prompt
from ouzel.worker_threads import PreparationThreads


class Compactor:
    def __init__(
        self, model: ServedModel, threads: PreparationThreads, summariser: Summariser
    ) -> None:
        self._model = model
        self._threads = threads
        self._summariser = summariser

    async def compact_context(
        self, checked_body: CheckedBody, context: Context, *, key_id: str | None, arrival_s: float
    ) -> Context:
        """Adds a compaction to the context if the body asks for one and the threshold is passed."""
        if not checked_body.fields.context_management:
            return context
        messages = await self._threads.run_long(
            partial(self._messages_to_compact, checked_body, context)
        )
        earlier, last_text = _split(messages)
        if not earlier:
            return context
        summary, _ = await self._summariser.summarise(
            earlier, key_id=key_id, arrival_s=arrival_s, on_generation=lambda generation: None
        )
        item = CompactionItem(new_id("cmp"), CONTEXT.pack(text_for_model(summary, last_text)))
        return dataclasses.replace(context, compaction=item)

    def _messages_to_compact(
        self, checked_body: CheckedBody, context: Context
    ) -> Sequence[InputMessage]:
        """Returns the messages after the leading system messages if the prompt is too long.

        Returns an empty sequence if the prompt is within the threshold.
        """
        if not self._is_past_threshold(checked_body, context):
            return ()
        messages = read_messages(context.items, None, readable=self._model.renderer.readable)
        return messages[count_leading(messages) :]

    def _is_past_threshold(self, checked_body: CheckedBody, context: Context) -> bool:
        rules = checked_body.fields.context_management
        assert rules
        threshold = rules[0].compact_threshold
        if threshold is None:
            threshold = room_for_prompt(
                self._model.engine.info.max_model_len, checked_body.options.max_tokens
            )
        untruncated = dataclasses.replace(
            checked_body, fields=replace(checked_body.fields, truncation=None)
        )
        try:
            prompt = render_input(untruncated, context.items, self._model)
        except ContextLengthExceeded:
            return True
        return len(prompt.token_ids) > threshold


def _split(messages: Sequence[InputMessage]) -> tuple[Sequence[InputMessage], str]:
    """Returns the messages to summarise and the text of the last user message.

    A last user message without an answer is not among the messages to summarise.
    """
    users = [position for position, each in enumerate(messages) if each.fields["role"] == "user"]
    if not users:
        return messages, ""
    last = users[-1]
    last_text = remove_summary(join_texts(messages[last].fields))
    has_no_answer = last == len(messages) - 1
    return (messages[:last] if has_no_answer else messages), last_text
