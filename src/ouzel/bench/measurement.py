"""One request as its client saw it. The definitions are those of `vllm bench serve`; times are in seconds."""

import itertools
import time
from dataclasses import dataclass

from ouzel.bench.chunks import Piece, Usage
from ouzel.bench.conversation import Turn
from ouzel.bench.endpoints import Endpoint
from ouzel.client.base import UNREADABLE, ApiClient, ApiFailure


@dataclass(frozen=True, slots=True)
class Measurement:
    """`start_s` is on the clock of `time.perf_counter`. Without output `ttft_s` and `itls_s` are 0 and empty."""

    start_s: float
    ttft_s: float  # from before the request is sent to the first chunk with output
    itls_s: tuple[float, ...]  # between chunks with output, of which one may hold several tokens
    e2el_s: float  # to the chunk with the last output, or with the finish reason where that comes by itself
    input_len: int
    cached_len: int  # of the input, which the server says that it had computed before
    output_len: int
    max_tokens: int  # that were asked for
    is_counted: bool  # by the server; else chunks with output are counted as tokens
    text: str  # what was written: reasoning, then answer
    answer: str
    error: str = ""  # nothing of a failed request but its error is part of the figures

    @property
    def is_complete(self) -> bool:
        return not self.error

    @property
    def tpot_s(self) -> float:
        """The time per output token after the first; 0 where there is no second."""
        return (self.e2el_s - self.ttft_s) / (self.output_len - 1) if self.output_len > 1 else 0.0

    @property
    def end_s(self) -> float:
        return self.start_s + self.e2el_s


class _Trace:
    """What has come of an answer."""

    def __init__(self) -> None:
        self.start_s = time.perf_counter()
        self._output_times_s: list[float] = []
        self._end_s = self.start_s
        self._has_ended = False
        self._answer: list[str] = []
        self._reasoning: list[str] = []
        self._usage: Usage | None = None
        self._error = ""

    def take(self, piece: Piece) -> None:
        now_s = time.perf_counter()
        if piece.has_output:
            self._output_times_s.append(now_s)
            self._end_s = now_s
            self._answer.append(piece.answer)
            self._reasoning.append(piece.reasoning)
        if piece.ends_answer:
            self._end_s = now_s
            self._has_ended = True
        if piece.usage is not None:
            self._usage = (
                piece.usage
            )  # some servers count in every chunk: the last count is the whole
        self._error = self._error or piece.error

    def measurement(self, error: str, turn: Turn) -> Measurement:
        times_s = self._output_times_s
        answer = "".join(self._answer)
        usage = self._usage
        is_counted = usage is not None and (
            usage.output_tokens > 0 or not times_s
        )  # some count nothing, and say 0
        return Measurement(
            start_s=self.start_s,
            ttft_s=(times_s[0] if times_s else self._end_s) - self.start_s,
            itls_s=tuple(later - earlier for earlier, later in itertools.pairwise(times_s)),
            e2el_s=self._end_s - self.start_s,
            input_len=usage.input_tokens if usage and usage.input_tokens else turn.input_len,
            cached_len=usage.cached_tokens if usage else 0,
            output_len=usage.output_tokens if usage and is_counted else len(times_s),
            max_tokens=turn.max_tokens,
            is_counted=is_counted,
            text="".join(self._reasoning) + answer,
            answer=answer,
            error=error or self._error or self._fault(),
        )

    def _fault(self) -> str:
        """Says why it is no whole answer: some servers close the stream in good order when they cannot go on."""
        if self._has_ended:
            return ""
        if not self._output_times_s:
            return "the answer had no output"
        return "" if self._usage else "the answer broke off: it has no finish reason"


async def measured(client: ApiClient, endpoint: Endpoint, body: bytes, turn: Turn) -> Measurement:
    """Asks once. What fails is a measurement with an error."""
    trace = _Trace()
    error = ""
    try:
        async with client.events(endpoint.path, body) as events:
            async for event in events:
                trace.take(endpoint.read(event))
    except ApiFailure as failure:
        error = str(failure)
    except UNREADABLE as failure:
        error = f"a chunk cannot be read: {failure}"
    return trace.measurement(error, turn)
