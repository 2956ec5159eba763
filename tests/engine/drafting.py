"""Costs, a prompt and checks that the tests of all sources of drafts share."""

from collections.abc import Callable
from random import Random
from typing import Any

from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from tests.engine.requests import Result, make_request, run, run_alone

FREE = StepCosts((1, 100), (1.0, 1.01))
DEAR = StepCosts((1, 100), (1.0, 100.0))
FOR_NOTHING = StepCosts((1, 100), (0.001, 0.00101))
# A prediction layer or head drafts whenever it can.
FREE_PREDICTION = Speculation(
    prompt_lookup=False, predicts=True, costs=FREE, draft_costs=FOR_NOTHING
)
PROMPT = [(7 * i) % 89 for i in range(37)]

# Few blocks for several requests, so that some requests are preempted.
FEW_BLOCKS: dict[str, Any] = {"num_blocks": 24, "max_num_seqs": 4, "max_num_batched_tokens": 16}


def check_counts(result: Result, share: float) -> None:
    """Checks the drafted tokens of an answer of 60 tokens, if `share` of the rows is right."""
    num_proposed, num_accepted = result.final.num_proposed_tokens, result.final.num_accepted_tokens
    assert num_proposed > 0
    if share == 1.0:
        # 60 tokens: each step has one token of its own, and one is the prompt's
        assert num_accepted == num_proposed >= 45
    elif share == 0.0:
        # different rows agree by chance, more often if one seed draws for both
        assert num_accepted < 0.2 * num_proposed
    else:
        assert 0.3 * num_proposed < num_accepted < num_proposed


def check_preempted_requests(engine: EngineCore, plain_engine: Callable[[], EngineCore]) -> None:
    """Checks that each of many requests has the answer of a plain engine.

    The engine's drafts are right, and it has `FEW_BLOCKS`.
    """
    random, num_proposed = Random(0), 0
    for number in range(20):
        requests = [
            make_request(
                [number, choice, *random.choices(range(90), k=random.randrange(20))],
                max_tokens=length,
            )
            for choice, length in enumerate(random.choices(range(2, 40), k=4))
        ]
        results = run(engine, requests)
        for request in requests:
            alone = run_alone(
                plain_engine(), make_request(request.prompt_token_ids, max_tokens=40)
            )[0]
            result = results[request.request_id, 0]
            assert result.token_ids == alone.token_ids[: request.params.max_tokens]
            assert result.final.num_accepted_tokens == result.final.num_proposed_tokens
            num_proposed += result.final.num_proposed_tokens
    assert num_proposed > 500
    assert engine.stats().num_preemptions > 0
