"""Lets a model summarise a conversation.

A conversation that fits into the context of the model is summarised at once. A longer conversation
is summarised in parts; the prompt of each part begins with the summary of the parts before it.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

import msgspec

from ouzel.config import LimitsConfig
from ouzel.errors import ContextLengthExceeded, EngineFailed, InvalidRequest
from ouzel.generation import Event, Generation, GenerationRequest, ServedModel, Usage, accept
from ouzel.observability import Metrics
from ouzel.responses.checked_body import check_body
from ouzel.responses.compaction.transcript import summary_prompt, write_entry
from ouzel.responses.input_items import InputMessage, read_input
from ouzel.responses.output_items import new_id
from ouzel.responses.prompt import render_input
from ouzel.responses.request import ResponsesRequest
from ouzel.wire.fold import fold
from ouzel.worker_threads import PreparationThreads

_CONTEXT_PER_SUMMARY = 8  # a summary may have max_model_len / 8 tokens


class Summariser:
    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        threads: PreparationThreads,
        metrics: Metrics,
    ) -> None:
        self._model = model
        self._limits = limits
        self._threads = threads
        self._metrics = metrics

    @property
    def _max_tokens(self) -> int:
        max_model_len = self._model.engine.info.max_model_len
        return min(
            max(max_model_len // _CONTEXT_PER_SUMMARY, 1),
            self._model.max_tokens_limit or max_model_len,
        )

    async def summarise(
        self,
        messages: Sequence[InputMessage],
        *,
        key_id: str | None,
        arrival_s: float,
        on_generation: Callable[[Generation], None],
    ) -> tuple[str, Usage]:
        """Returns the summary and the summed usage of all parts.

        `on_generation` is called with the generation of each part before the generation begins.
        Raises ContextLengthExceeded for a message that is too long by itself, and InvalidRequest
        for more than `max_prompts` parts.
        """
        entries = await self._threads.run_long(partial(_write_entries, messages))
        summary = ""
        usage = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, reasoning_tokens=0)
        num_parts = num_done = 0
        while num_done < len(entries):
            path = messages[num_done].path
            longest_part = partial(
                self._longest_part, entries[num_done:], summary, arrival_s, path=path
            )
            request, num = await self._threads.run_long(longest_part)
            num_parts += 1
            self._check_num_parts(num_parts if num_done else _estimated_num_parts(entries, num))
            generation = Generation(request, self._model, self._metrics, key_id=key_id)
            on_generation(generation)
            summary = await self._write_summary(generation)
            usage = _sum(usage, generation.usage())
            num_done += num
        return summary, usage

    def _check_num_parts(self, num_parts: float) -> None:
        """Raises InvalidRequest for more than `max_prompts` parts: each part is a prompt."""
        most = self._limits.max_prompts
        if num_parts > most:
            raise InvalidRequest(
                f"must be summarised in <= {most} parts that fit into max_model_len (max_prompts), "
                f"given about {math.ceil(num_parts)}",
                field="input",
            )

    def _longest_part(
        self, entries: Sequence[str], before: str, arrival_s: float, *, path: str
    ) -> tuple[GenerationRequest, int]:
        """Finds the largest number of entries that fit, by bisection.

        Returns the request for their summary, and their number. `before` is the summary of earlier
        entries. Raises ContextLengthExceeded if the first entry alone is too long; `path` names
        its message.
        """
        longest: GenerationRequest | None = None
        num, too_many, attempt = 0, len(entries) + 1, len(entries)
        while attempt > num:
            try:
                longest = self._request(summary_prompt(entries[:attempt], before), arrival_s)
                num = attempt
            except ContextLengthExceeded:
                too_many = attempt
            attempt = (num + too_many) // 2
        if longest is None:
            raise ContextLengthExceeded(
                f"is too long to be summarised: with {self._max_tokens} tokens for the summary it "
                f"must fit into max_model_len, {self._model.engine.info.max_model_len}",
                field=path,
            )
        return longest, num

    def _request(self, prompt_text: str, arrival_s: float) -> GenerationRequest:
        """Builds an internal request; prompt and summary must fit into the context of the model."""
        fields = ResponsesRequest(
            model=self._model.names[0],
            input=prompt_text,
            max_output_tokens=self._max_tokens,
            enable_thinking=False,
        )
        checked_body = check_body(fields, self._model, self._limits, has_store=False)
        options = msgspec.structs.replace(checked_body.options, is_strict=True)
        checked_body = replace(checked_body, chat=replace(checked_body.chat, options=options))
        prompt = render_input(checked_body, read_input(prompt_text), self._model)
        return accept(options, prompt, self._model, request_id=new_id("resp"), arrival_s=arrival_s)

    async def _write_summary(self, generation: Generation) -> str:
        """Generates the summary; a summary that reaches `max_tokens` is cut there.

        Raises EngineFailed if the model writes nothing.
        """
        events: list[Event] = []
        async with aclosing(generation.events()) as steps:
            async for new in steps:
                events += new
        [choice] = fold(events)
        summary = choice.content.strip()
        if not summary:
            raise EngineFailed(f"the model wrote no summary within {self._max_tokens} tokens")
        return summary


def _write_entries(messages: Sequence[InputMessage]) -> list[str]:
    return [write_entry(each.fields) for each in messages]


def _estimated_num_parts(entries: Sequence[str], num: int) -> float:
    """Estimates the number of parts from the text lengths of the entries.

    The first part has `num` entries, and one entry more did not fit.
    """
    return sum(map(len, entries)) / max(sum(map(len, entries[: num + 1])), 1)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        reasoning_tokens=one.reasoning_tokens + other.reasoning_tokens,
        accepted_prediction_tokens=one.accepted_prediction_tokens
        + other.accepted_prediction_tokens,
        rejected_prediction_tokens=one.rejected_prediction_tokens
        + other.rejected_prediction_tokens,
    )
