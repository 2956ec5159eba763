"""Compares scheduled requests with transformers: hits, forks, beams, chunks, preemption.

All prompts begin one text whose continuation is known, so all answers are known.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest
from tests.backends import of_kinds
from tests.backends.conftest import Golden, Load
from tests.engine.requests import make_request, run, run_alone

BEAMS = BeamSearchParams(width=2)


@dataclass
class FewBlocks:
    """A runner that reports few blocks, so that sequences preempt each other."""

    runner: ModelRunner
    num_blocks: int

    @property
    def info(self) -> EngineInfo:
        sizes = {"num_blocks": self.num_blocks, "max_num_seqs": 6, "max_num_batched_tokens": 48}
        return msgspec.structs.replace(self.runner.info, **sizes)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        return self.runner.run(batch)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self.runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        """Does nothing: the owner of the wrapped runner closes it."""


# Any: the fields of make_request
def request_rest(golden: Golden, num_known: int, **options: Any) -> EngineRequest:
    """Requests the rest of the text; the prompt has `num_known` tokens of the continuation."""
    prompt = golden.prompt + golden.greedy[:num_known]
    return make_request(prompt, max_tokens=len(golden.greedy) - num_known, **options)


@pytest.mark.parametrize("golden", of_kinds("schedules of other families"), indirect=True)
def test_every_request_gets_its_continuation_under_any_schedule(golden: Golden, load: Load) -> None:
    runner = load(golden.directory)
    beams = make_request(golden.prompt, n=2, max_tokens=12, beam_search=BEAMS)
    alone = run_alone(EngineCore(runner), msgspec.structs.replace(beams, request_id="alone"))
    engine = EngineCore(FewBlocks(runner, num_blocks=9))
    known = [0, 24, 25, 63]
    requests = [request_rest(golden, number) for number in known]
    requests += [request_rest(golden, number, cache_salt=f"{number}") for number in known]
    forked = request_rest(golden, 7, n=2)

    results = run(engine, [*requests, forked, beams])

    for request in [*requests, forked]:
        expected = golden.greedy[len(request.prompt_token_ids) - len(golden.prompt) :]
        for index in range(request.n):
            assert results[request.request_id, index].token_ids == expected
    assert [results[beams.request_id, index].token_ids for index in range(2)] == [
        result.token_ids for result in alone
    ]
    stats = engine.stats()
    assert stats.num_preemptions > 0
    assert stats.num_prefix_hit_tokens > 0
    assert stats.num_used_blocks == stats.num_running == stats.num_waiting == 0
