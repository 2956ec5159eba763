"""Makes the outputs of one step from the state of the engine."""

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.beam import FinishedBeam
from ouzel.engine.sampling.sampler import Sampled
from ouzel.engine.state.sequence import Sequence
from ouzel.pooling import Pooling
from ouzel.types.step_output import PositionLogprobs, RequestTiming, StepOutput


def make_output(
    sequence: Sequence,
    sampled: Sampled | None = None,
    # the sampled token and the tokens that the grammar forces after it
    token_ids: list[int] | None = None,
    prompt_logprobs: list[PositionLogprobs] | None = None,
) -> StepOutput:
    """Makes the output of a choice that samples its own tokens, or has no new tokens."""
    return StepOutput(
        request_id=sequence.request.request_id,
        index=sequence.index,
        token_ids=token_ids or [],
        logprobs=[] if sampled is None or sampled.logprobs is None else [sampled.logprobs],
        num_cached_tokens=sequence.num_cached_tokens,
        prompt_logprobs=prompt_logprobs or [],
        finish_reason=sequence.finish_reason,
        stop_token_id=sequence.stop_token_id,
        error=sequence.error,
        error_param=sequence.error_param,
        vector=sequence.vector,
        num_proposed_tokens=sequence.num_proposed_tokens,
        num_accepted_tokens=sequence.num_accepted_tokens,
        timing=sequence.timing() if _is_first_result(sequence, len(token_ids or ())) else None,
    )


def _is_first_result(sequence: Sequence, num_new_tokens: int) -> bool:
    if sequence.params.max_tokens == 0:
        return sequence.first_token_at is not None
    return 0 < sequence.num_output_tokens == num_new_tokens


def encode_vector(pooling: Pooling | None, row: NDArray[np.float32]) -> bytes | None:
    """Encodes the row of a pooling request as little-endian float32.

    The row is a hidden state, or logits; `pooling.token_ids` selects some logits.
    """
    if pooling is None:
        return None
    values = row[list(pooling.token_ids)] if pooling.token_ids else row
    return values.astype("<f4").tobytes()


def make_winner_output(choice: Sequence, winner: FinishedBeam, timing: RequestTiming) -> StepOutput:
    """Makes the output of a choice that receives a finished beam."""
    return StepOutput(
        request_id=choice.request.request_id,
        index=choice.index,
        token_ids=winner.token_ids,
        logprobs=winner.logprobs,
        num_cached_tokens=choice.num_cached_tokens,
        finish_reason=choice.finish_reason,
        stop_token_id=choice.stop_token_id,
        timing=timing,
        score=winner.score,
    )
