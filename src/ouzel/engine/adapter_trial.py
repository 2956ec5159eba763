"""Tries each adapter once after it has been read, before any request can name it.

Rules
1. The trial is one forward pass of a few random tokens between two steps. It takes one KV block,
   and one state slot if the model has states, and frees both. It changes no request, no seed and no
   statistic.
2. A trial takes an unused block first, then a block that only the prefix cache holds. If running
   sequences hold every block, the trial waits until a sequence ends.
3. The trial checks each row as sampling does: the largest logit must be a finite number.
"""

import logging

import numpy as np

from ouzel.engine.base import AdapterRunner, ModelRunner
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.scheduling.batch import build_batch
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.state.adapters import Adapter, Adapters
from ouzel.engine.state.sequence import Sequence
from ouzel.errors import STOPS, ModelLoadError
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest

logger = logging.getLogger(__name__)

_MAX_TRIED_TOKENS = 16


def make_adapters(runner: ModelRunner, blocks: BlockManager) -> Adapters:
    """Makes the adapters of an engine; the engine's runner tries each adapter after it was read."""
    if not isinstance(runner, AdapterRunner):
        return Adapters(None, 0)
    return Adapters(runner, runner.info.max_loras, AdapterTrial(runner, blocks))


class AdapterTrial:
    """Implements `Trial`: one forward pass with a new adapter."""

    def __init__(self, runner: ModelRunner, blocks: BlockManager) -> None:
        self._runner = runner
        self._blocks = blocks

    @property
    def has_room(self) -> bool:
        states = self._blocks.states
        return self._blocks.num_free_blocks > 0 and (states is None or states.num_spare(0) > 0)

    def run(self, adapter: Adapter) -> None:
        info = self._runner.info
        num_tokens = min(
            _MAX_TRIED_TOKENS, info.block_size, info.max_model_len, info.max_num_batched_tokens
        )
        sequence = _sequence(adapter, num_tokens, info.vocab_size)
        try:
            num_failed = self._num_failed_rows(sequence)
        except STOPS:
            raise
        except BaseException as error:  # a fault of the device: the engine's other requests go on
            logger.exception("the trial of adapter %s failed", adapter.name)
            raise ModelLoadError(
                f"adapter {adapter.name!r}: a trial with it failed: {error}"
            ) from error
        finally:
            self._blocks.release(sequence)
        if num_failed:
            raise ModelLoadError(
                f"adapter {adapter.name!r} makes the model overflow: in a trial of {num_tokens} "
                f"tokens the logits of {num_failed} tokens were infinite or not a number (NaN). "
                f"The weights of the adapter are too large for this model"
            )

    def _num_failed_rows(self, sequence: Sequence) -> int:
        num_tokens = sequence.num_prompt_tokens
        has_blocks = self._blocks.allocate(sequence, num_tokens)
        assert has_blocks, "a trial starts where there is room"
        states = self._blocks.states
        if states is not None:
            states.take(sequence)
        scheduled = Scheduled(sequence, num_tokens, scored_rows=range(num_tokens - 1))
        batch = build_batch([scheduled], self._blocks.block_size, has_states=states is not None)
        largest = self._runner.run(batch).max(axis=1)
        return int(np.count_nonzero(~np.isfinite(largest)))


def _sequence(adapter: Adapter, num_tokens: int, vocab_size: int) -> Sequence:
    """Makes a sequence of random tokens outside of the scheduler."""
    token_ids = np.random.default_rng(0).integers(0, vocab_size, num_tokens).tolist()
    request = EngineRequest(
        request_id="trial",
        prompt_token_ids=token_ids,
        params=SamplingParams(max_tokens=1),
        adapter=adapter.name,
    )
    return Sequence(request, 0, 0, None, adapter)
