"""Holds the outputs of one request on the way from the engine to its reader."""

import asyncio

import msgspec

from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput

# Outputs that a reader in the background gets at once: it is in no hurry, and each reading has a
# cost. A stop string may be found as many tokens late.
_LEAST_IN_BACKGROUND = 16
_ACCEPTED = (None, FinishReason.STOP, FinishReason.LENGTH)


class Collector:
    """Merges outputs that the reader has not fetched: a slow reader gets fewer, larger outputs."""

    def __init__(self, request: EngineRequest, accepted: asyncio.Event | None = None) -> None:
        """Sets `accepted` at the first output that is neither a refusal nor a failure."""
        self._accepted = accepted
        self._request_id = request.request_id
        self._open = set(range(request.n))  # choices whose final output has not arrived
        self._pending: dict[int, list[StepOutput]] = {}  # outputs by choice
        self._num_pending = 0
        self._least = _LEAST_IN_BACKGROUND if request.is_background else 1
        self._arrived = asyncio.Event()

    @property
    def is_complete(self) -> bool:
        """Tells whether every final output has arrived."""
        return not self._open

    @property
    def is_finished(self) -> bool:
        """Tells whether every final output has been read."""
        return not self._open and not self._pending

    def put(self, output: StepOutput) -> None:
        self._pending.setdefault(output.index, []).append(output)
        if self._accepted is not None and output.finish_reason in _ACCEPTED:
            self._accepted.set()
        if output.finish_reason is not None:
            self._open.discard(output.index)
        self._num_pending += 1
        if self._num_pending >= self._least or output.finish_reason is not None:
            self._arrived.set()

    def lose(self, reason: str) -> None:
        for index in tuple(self._open):
            self.put(
                StepOutput(
                    request_id=self._request_id,
                    index=index,
                    token_ids=[],
                    logprobs=[],
                    num_cached_tokens=0,
                    finish_reason=FinishReason.ERROR,
                    error=reason,
                )
            )

    async def read(self) -> list[StepOutput]:
        await self._arrived.wait()
        self._arrived.clear()
        outputs = [merge(unread) for unread in self._pending.values()]
        self._pending.clear()
        self._num_pending = 0
        return outputs


def merge(outputs: list[StepOutput]) -> StepOutput:
    """Merges consecutive outputs of one choice."""
    if len(outputs) == 1:
        return outputs[0]
    return msgspec.structs.replace(
        outputs[-1],
        token_ids=[token_id for output in outputs for token_id in output.token_ids],
        logprobs=[position for output in outputs for position in output.logprobs],
        prompt_logprobs=[position for output in outputs for position in output.prompt_logprobs],
        timing=next((output.timing for output in outputs if output.timing is not None), None),
        num_cached_tokens=max(output.num_cached_tokens for output in outputs),
    )
