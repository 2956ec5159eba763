"""Measures one request at the client, by the definitions of `vllm bench serve`, in seconds."""

import itertools
import time
from dataclasses import dataclass

from ouzel.bench.chunks import Piece, Usage
from ouzel.bench.conversation import Turn
from ouzel.bench.endpoints import Endpoint
from ouzel.client.base import UNREADABLE, ApiClient, ApiFailure


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times and lengths of one request."""

    start_s: float  # time.perf_counter() before the request is sent
    ttft_s: (
        float  # time from the start to the first chunk with output, or to the end without output
    )
    itls_s: tuple[float, ...]  # times between chunks with output; a chunk may have several tokens
    e2el_s: float  # time to the last chunk with output or with the finish reason
    input_len: int
    cached_len: int  # input tokens that the server found in its prefix cache
    output_len: int
    max_tokens: int  # max_tokens of the request
    is_counted: bool  # the server counted the output; else each chunk with output counts as a token
    text: str  # the reasoning, then the answer
    answer: str
    error: str = ""  # a request with an error counts as failed, and in no other figure

    @property
    def is_complete(self) -> bool:
        return not self.error

    @property
    def tpot_s(self) -> float:
        """Returns the time per output token after the first; 0 for a single token."""
        return (self.e2el_s - self.ttft_s) / (self.output_len - 1) if self.output_len > 1 else 0.0

    @property
    def end_s(self) -> float:
        return self.start_s + self.e2el_s


class _Trace:
    """Collects the pieces of an answer and their times."""

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
        # Some servers send usage in every chunk; the last one counts the whole answer.
        if piece.usage is not None:
            self._usage = piece.usage
        self._error = self._error or piece.error

    def measurement(self, error: str, turn: Turn) -> Measurement:
        times_s = self._output_times_s
        answer = "".join(self._answer)
        usage = self._usage
        # Some servers send 0 without counting.
        is_counted = usage is not None and (usage.output_tokens > 0 or not times_s)
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
        """Returns the reason why the answer is incomplete, or "".

        Some servers close the stream correctly although they could not finish the answer.
        """
        if self._has_ended:
            return ""
        if not self._output_times_s:
            return "the answer had no output"
        return "" if self._usage else "the answer broke off: it has no finish reason"


async def measure(client: ApiClient, endpoint: Endpoint, body: bytes, turn: Turn) -> Measurement:
    """Sends one request and measures its answer; a failure becomes the error of the measurement."""
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
