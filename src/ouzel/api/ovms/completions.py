"""Reads and answers completions as OVMS does: without a limit they continue to the model's end.

Its streams open each choice with a chunk without text, and end the choice in the chunk of its last
text.
"""

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.dialect import Answer
from ouzel.api.openai.completions import (
    Completion,
    CompletionAnswer,
    CompletionChoice,
    CompletionRequest,
    Completions,
)
from ouzel.api.ovms.body import parse_body, read_fields
from ouzel.api.ovms.held_pieces import HeldPieces
from ouzel.api.ovms.verbose import make_verbose
from ouzel.config import LimitsConfig
from ouzel.generation import Event, GenerationRequest, ServedModel, Usage
from ouzel.wire.decode import JsonObject


class OvmsCompletions:
    """Reads OVMS's completions and begins their answers."""

    parse = staticmethod(parse_body)

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._openai = Completions(model, limits, default_max_tokens=None)

    def prepare(
        self, fields: JsonObject, arrival_s: float
    ) -> tuple[list[GenerationRequest], Answer]:
        body = read_fields(fields, CompletionRequest, self._model.names)
        requests, answer = self._openai.read(body, arrival_s)
        return requests, OvmsCompletionAnswer(answer)


class OvmsCompletionAnswer:
    """Writes OpenAI's answer in OVMS's form."""

    def __init__(self, openai: CompletionAnswer) -> None:
        self.is_stream = openai.is_stream
        self.framing = openai.framing
        self._openai = openai
        self._opened: set[int] = set()  # choices with a first chunk
        self._held = HeldPieces[Completion]()

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[Completion]:
        chunks: list[Completion] = []
        for event in events:
            pieces: list[Completion] = []
            for chunk in self._openai.chunks([event], usage):
                if chunk.choices[0].index not in self._opened:
                    self._opened.add(chunk.choices[0].index)
                    chunks.append(_make_opening(chunk))
                pieces += _drop_opening(chunk)
            chunks += self._held.take(event, pieces)
        return chunks

    def last_chunks(self, usage: Usage) -> list[Completion]:
        return self._openai.last_chunks(usage)

    def whole(self, events: Sequence[Event], usage: Usage) -> Completion:
        return self._openai.whole(events, usage)


def _make_opening(chunk: Completion) -> Completion:
    """Returns the chunk for a choice's first token, from the first chunk of OpenAI's answer."""
    choice = chunk.choices[0]
    opening = CompletionChoice(
        choice.index,
        "",
        token_ids=UNSET if choice.token_ids is UNSET else [],
        prompt_token_ids=choice.prompt_token_ids,
        prompt_logprobs=choice.prompt_logprobs,
    )
    return replace(chunk, choices=[opening])


def _drop_opening(chunk: Completion) -> Iterator[Completion]:
    """Yields the chunk without the facts of the opening chunk, unless it is empty."""
    choice = chunk.choices[0]
    choice.prompt_token_ids = choice.prompt_logprobs = UNSET
    says_logprobs = choice.logprobs is not None and choice.logprobs.tokens
    if choice.text or says_logprobs or choice.token_ids or choice.finish_reason is not None:
        yield chunk


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/completions",
        prefixes=PREFIXES,
        profile="ovms",
        is_documented=False,
        endpoint=lambda services: services.make_generating(
            make_verbose(OvmsCompletions(services.model, services.limits), services)
        ),
        choice=choose_for("generate"),
    ),
)
