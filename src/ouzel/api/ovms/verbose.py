"""Adds `__verbose` to answers, with `--verbose-response`: the prompt, and the output with all
marks.

In a stream the last chunk of the first choice has it. Of several choices or prompts only the first
is shown.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any  # objects on the wire

import msgspec

from ouzel.api.endpoint.services import Services
from ouzel.api.http.dialect import Answer, Dialect
from ouzel.api.http.kept_answer import KeptAnswer
from ouzel.generation import Event, Finished, GenerationRequest, Output, ServedModel, Usage
from ouzel.wire.decode import JsonObject

_KEY = "__verbose"


def make_verbose(dialect: Dialect, services: Services) -> Dialect:
    """Returns the dialect, wrapped if the server's options ask for verbose answers."""
    return VerboseDialect(dialect, services.model) if services.config.verbose_response else dialect


class VerboseDialect:
    """Wraps a dialect, and adds `__verbose` to its answers."""

    def __init__(self, dialect: Dialect, model: ServedModel) -> None:
        self._dialect = dialect
        self._model = model

    def parse(self, body: bytes) -> JsonObject:
        return self._dialect.parse(body)

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        requests, answer = self._dialect.prepare(fields, arrival_s)
        prompt = requests[0].prompt.text if requests else ""
        wrap = partial(VerboseAnswer, prompt=prompt, model=self._model)
        if isinstance(answer, KeptAnswer):
            return requests, answer.show_as(wrap)
        return requests, wrap(answer)


class VerboseAnswer:
    """Wraps an answer, and adds `__verbose` to it."""

    def __init__(self, answer: Answer, prompt: str, model: ServedModel) -> None:
        self.is_stream = answer.is_stream
        self.framing = answer.framing
        self._answer = answer
        self._prompt = prompt
        self._model = model
        self._token_ids: list[int] = []  # token ids of the first choice

    def chunks(self, events: Sequence[Event], usage: Usage) -> Sequence[object]:
        self._collect(events)
        chunks = [*self._answer.chunks(events, usage)]
        if any(isinstance(event, Finished) and event.index == 0 for event in events):
            return [
                self._complete(chunk) if _ends_first_choice(chunk) else chunk for chunk in chunks
            ]
        return chunks

    def last_chunks(self, usage: Usage) -> Sequence[object]:
        return self._answer.last_chunks(usage)

    def whole(self, events: Sequence[Event], usage: Usage) -> object:
        self._collect(events)
        return self._complete(self._answer.whole(events, usage))

    def _collect(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Output) and event.index == 0:
                self._token_ids += event.token_ids

    def _complete(self, answer: object) -> dict[str, Any]:
        content = self._model.tokenizer.decode(self._token_ids, skip_special_tokens=False)
        fields: dict[str, Any] = msgspec.to_builtins(answer)
        return fields | {_KEY: {"prompt": self._prompt, "content": content}}


def _ends_first_choice(chunk: Any) -> bool:
    return any(choice.index == 0 and choice.finish_reason for choice in chunk.choices)
