"""Families under the scheduler: what comes of hits, forks, beams, chunks and preemption is what transformers gives.

All prompts are the beginning of one text whose continuation is known, so that each answer is.
"""

from dataclasses import dataclass

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
    """A runner that says that it has few blocks, so that sequences displace each other."""

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
        """The other's owner closes it."""


def request_after(golden: Golden, num_known: int, **options: object) -> EngineRequest:
    """Asks for the rest of the text when so many tokens of its continuation are part of the prompt."""
    prompt = golden.prompt + golden.greedy[:num_known]
    return make_request(prompt, max_tokens=len(golden.greedy) - num_known, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("golden", of_kinds("schedules of other families"), indirect=True)
def test_each_gets_its_continuation_however_it_is_scheduled(golden: Golden, load: Load) -> None:
    runner = load(golden.directory)
    beams = make_request(golden.prompt, n=2, max_tokens=12, beam_search=BEAMS)
    alone = run_alone(EngineCore(runner), msgspec.structs.replace(beams, request_id="alone"))
    engine = EngineCore(FewBlocks(runner, num_blocks=9))
    known = [0, 24, 25, 63]
    requests = [request_after(golden, number) for number in known]
    requests += [request_after(golden, number, cache_salt=f"{number}") for number in known]
    forked = request_after(golden, 7, n=2)

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
