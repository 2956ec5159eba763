"""Makes random prompts, and times an engine from a prompt to its first token."""

import time
from itertools import count

import numpy as np

from ouzel.engine.base import Engine
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest

_ids = count()


class Prompts:
    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def random(self, num_tokens: int) -> list[int]:
        token_ids: list[int] = self._random.integers(300, 30_000, num_tokens).tolist()
        return token_ids


def request(token_ids: list[int], max_tokens: int = 1) -> EngineRequest:
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0)
    return EngineRequest(
        request_id=f"request-{next(_ids)}", prompt_token_ids=token_ids, params=params
    )


def seconds_to_first_token(engine: Engine, token_ids: list[int]) -> float:
    """Runs one request of one token to its end."""
    started = time.perf_counter()
    engine.add(request(token_ids))
    while engine.has_unfinished():
        engine.step()
    return time.perf_counter() - started
