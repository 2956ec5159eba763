"""Writes the request body of one choice for a remote vLLM, and reads the outputs from its answer.

vLLM 0.33 takes a `GenerateRequest` at /inference/v1/generate. It answers with a stream of
`GenerateTokensStreamResponse`, or with one `GenerateTokensResponse`, because streams have no prompt
logprobs.
"""

import time

import msgspec

from ouzel.backends.vllm.sampling_fields import (
    grammar_text,
    make_cache_salt,
    read_finish_reason,
    read_priority,
    sampling_fields,
)
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import (
    FinishReason,
    PositionLogprobs,
    RequestTiming,
    StepOutput,
    TokenLogprob,
)

ID_PREFIX = "generate-tokens-"  # vLLM puts it before the request's id


class _Logprob(msgspec.Struct):
    token_id: int
    logprob: float
    rank: int | None = None


class _Position(_Logprob):
    top_logprobs: list[_Logprob] = []


class _Logprobs(msgspec.Struct):
    content: list[_Position] | None = None


class _PromptLogprob(msgspec.Struct):
    logprob: float
    rank: int | None = None


class _Choice(msgspec.Struct):
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


class _TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens_details: _TokenDetails | None = None


class _Error(msgspec.Struct):
    message: str = "no reason was given"


class _Answer(msgspec.Struct):
    """A piece of a stream, or the whole answer."""

    choices: list[_Choice] = []
    usage: _Usage | None = None
    prompt_logprobs: list[dict[int, _PromptLogprob] | None] | None = None
    error: _Error | None = None


_decoder = msgspec.json.Decoder(_Answer)


class AnswerError(Exception):
    """The answer reports a failure; the message is vLLM's."""


class RemoteChoice:
    """Sends one choice as a request of its own to a remote vLLM."""

    def __init__(self, request: EngineRequest, index: int, vocab_size: int) -> None:
        self.request = request
        self.index = index
        self.name = f"{request.request_id}-{index}"
        self._vocab_size = vocab_size
        self._asked_at = time.monotonic()
        self.has_begun = False
        self._last: StepOutput | None = None  # kept until the usage arrives, which vLLM sends last

    @property
    def is_whole(self) -> bool:
        """Tells whether the answer is one piece, not a stream."""
        return self.index == 0 and self.request.params.num_prompt_logprobs is not None

    def body(self) -> bytes:
        request = self.request
        fields = sampling_fields(request, self.index)
        if request.grammar is not None:
            fields["structured_outputs"] = {"grammar": grammar_text(request.grammar)}
        body: dict[str, object] = {
            "request_id": self.name,
            "token_ids": request.prompt_token_ids,
            "sampling_params": fields,
            "stream": not self.is_whole,
        }
        if not self.is_whole:
            body["stream_options"] = {"include_usage": True}
        if (salt := make_cache_salt(request)) is not None:
            body["cache_salt"] = salt
        if request.priority:
            body["priority"] = read_priority(request)
        if request.grammar is not None:  # text before the form is a part of our grammar
            body["reasoning_ended"] = True
        return msgspec.json.encode(body)

    def read(self, data: bytes) -> list[StepOutput]:
        """Reads a piece; returns its outputs except the final one, which `finish` returns.

        Raises AnswerError and msgspec.DecodeError.
        """
        answer = _decoder.decode(data)
        if answer.error is not None:
            raise AnswerError(answer.error.message)
        outputs = [self._output(choice, answer) for choice in answer.choices]
        for output in outputs:
            if output.finish_reason is not None:
                self._last = output
        if self._last is not None and answer.usage is not None:
            details = answer.usage.prompt_tokens_details
            num_cached = (details.cached_tokens if details is not None else None) or 0
            self._last = msgspec.structs.replace(self._last, num_cached_tokens=max(num_cached, 0))
        return [output for output in outputs if output.finish_reason is None]

    def finish(self) -> StepOutput:
        """Returns the final output. Raises AnswerError if there is none."""
        if self._last is None:
            raise AnswerError("the answer ended too early")
        return self._last

    def _output(self, choice: _Choice, answer: _Answer) -> StepOutput:
        params = self.request.params
        reason, token_ids = read_finish_reason(choice.finish_reason), choice.token_ids or []
        foreign = next((each for each in token_ids if not 0 <= each < self._vocab_size), None)
        if foreign is not None:
            raise AnswerError(
                f"token {foreign} is not in this model's vocabulary of {self._vocab_size} tokens: "
                f"does the server have the same model?"
            )
        stop_token_id = choice.stop_reason if isinstance(choice.stop_reason, int) else None
        if params.max_tokens == 0 and reason in (None, FinishReason.STOP, FinishReason.LENGTH):
            token_ids, stop_token_id = [], None
            reason = FinishReason.LENGTH if reason is not None else None
        positions = (choice.logprobs.content if choice.logprobs is not None else None) or []
        if params.num_logprobs is not None and len(positions) < len(token_ids):
            raise AnswerError(
                f"the answer has logprobs for {len(positions)} of {len(token_ids)} tokens"
            )
        return StepOutput(
            request_id=self.request.request_id,
            index=self.index,
            token_ids=token_ids,
            logprobs=[
                _position(position, params.num_logprobs, params.logprob_token_ids)
                for position in positions[: len(token_ids)]
                if params.num_logprobs is not None
            ],
            num_cached_tokens=0,
            prompt_logprobs=self._prompt_positions(answer.prompt_logprobs),
            finish_reason=reason,
            stop_token_id=stop_token_id,
            error="vLLM could not compute this request" if reason is FinishReason.ERROR else None,
            timing=self._timing(),
        )

    def _timing(self) -> RequestTiming | None:
        """Returns, with the first piece, the time before it.

        The time in vLLM's queue is unknown.
        """
        if self.has_begun:
            return None
        self.has_begun = True
        return RequestTiming(queue_s=0.0, prefill_s=time.monotonic() - self._asked_at)

    def _prompt_positions(
        self, positions: list[dict[int, _PromptLogprob] | None] | None
    ) -> list[PositionLogprobs]:
        num_top = self.request.params.num_prompt_logprobs
        if not positions or num_top is None:
            return []
        found: list[PositionLogprobs] = []
        for token_id, entries in zip(self.request.prompt_token_ids[1:], positions[1:], strict=True):
            if entries is None or token_id not in entries:
                raise AnswerError("the answer lacks logprobs of the prompt")
            ranked = sorted(entries.items(), key=lambda item: item[1].rank or 0)[:num_top]
            top = tuple(TokenLogprob(each, entry.logprob) for each, entry in ranked)
            own = entries[token_id]
            found.append(PositionLogprobs(TokenLogprob(token_id, own.logprob), top, own.rank))
        return found


def _position(position: _Position, num_top: int, shown_ids: tuple[int, ...]) -> PositionLogprobs:
    """Converts the sampled token and the likely tokens, which include it."""
    entries = {entry.token_id: entry for entry in position.top_logprobs}
    ranked = sorted(entries.values(), key=lambda entry: entry.rank or 0)[:num_top]
    shown = [entries[token_id] for token_id in dict.fromkeys(shown_ids) if token_id in entries]
    return PositionLogprobs(
        sampled=TokenLogprob(position.token_id, position.logprob),
        top=tuple(TokenLogprob(entry.token_id, entry.logprob) for entry in [*ranked, *shown]),
        rank=position.rank,
    )
