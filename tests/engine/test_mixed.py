"""Tests mixtures of all kinds of requests, with few blocks, random aborts and random faults.

Each request gets the same output as alone.
"""

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any  # sampling parameters are forwarded as they are

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.speculation.proposals import Speculation
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from ouzel.types.step_output import FinishReason
from tests.engine.drafting import FREE
from tests.engine.requests import MAX_STEPS, Result, Results, collect, make_request, run_alone
from tests.grammar.tokenizers import grammar_tokenizer, special_ids

VOCAB_SIZE = 512
END = special_ids()["<|im_end|>"]
GRAMMARS = (
    'start: "The answer is " /[0-9]{2}/ ", and that is all."',
    'start: ("get_" /[a-z]/ " ")*',
    'start: %json {"type": "array", "items": {"enum": [true, "weather", 42]}, "minItems": 2}',
    'start: "Hello World!"',
    "start: nowhere",
)
NORMAL = (FinishReason.STOP, FinishReason.LENGTH)
FURTHER = pytest.mark.release("further mixtures of requests")
SEEDS = [  # seed, number of states that are cached
    (0, None),
    *(pytest.param(seed, None, marks=FURTHER) for seed in (1, 2, 3)),
    pytest.param(4, 0, marks=FURTHER),
    (5, 3),
    pytest.param(6, 50, marks=FURTHER),
]


class ShakyRunner(FakeRunner):
    """A runner whose device fails now and then, or returns NaN for one row."""

    def __init__(self, random: Random | None, **options: int | None) -> None:
        sizes: dict[str, Any] = {"max_model_len": 96, **options}
        super().__init__(vocab_size=VOCAB_SIZE, **sizes)
        self._random = random

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = super().run(batch)
        if self._random is None:
            return logits
        if self._random.random() < 0.01:
            raise RuntimeError("device fault")
        if self._random.random() < 0.02 and len(logits):
            logits[self._random.randrange(len(logits))] = np.nan
        return logits


@pytest.fixture(scope="module")
def compiler() -> Iterator[GrammarCompiler]:
    compiler = GrammarCompiler(grammar_tokenizer(VOCAB_SIZE), timeout_s=60.0)
    yield compiler
    compiler.close()


@pytest.fixture(scope="module")
def roomy(compiler: GrammarCompiler) -> EngineCore:
    return EngineCore(ShakyRunner(None, num_blocks=400, max_num_seqs=16), grammars=compiler)


def mixed_request(random: Random, common: list[int]) -> EngineRequest:
    n = random.choice([1, 1, 2, 4])
    params: dict[str, Any] = random.choice(
        [
            {},
            {"temperature": 0.9, "top_k": 20, "repetition_penalty": 1.2},
            {
                "temperature": 1.2,
                "top_p": 0.8,
                "no_repeat_ngram_size": 2,
                "bad_words": ((5,), (7, 8)),
            },
            {
                "temperature": 1.0,
                "allowed_token_ids": tuple(range(random.choice([20, 300]))),
                "no_repeat_ngram_size": 1,
            },
        ]
    )
    if random.random() < 0.3:
        params |= {"num_logprobs": random.choice([0, 3])}
    if random.random() < 0.3:
        params |= {"num_prompt_logprobs": random.choice([0, 2])}
    if random.random() < 0.3:
        params |= {"min_tokens": 2, "stop_token_ids": tuple(range(0, VOCAB_SIZE, 5))}
    form = random.choice(["free", "free", "beams", "grammar", "grammar"])
    if form == "beams":
        num_groups = random.choice([1, 1, 2])
        params["beam_search"] = BeamSearchParams(
            width=4, num_groups=num_groups, diversity_penalty=0.5
        )
    return make_request(
        common[: random.randrange(20)]
        + [random.randrange(300) for _ in range(random.randrange(1, 12))],
        n=n,
        max_tokens=random.choice([0, 1, 5, 20 if form == "beams" else 90]),
        priority=random.choice([0, 0, 1]),
        cache_salt=random.choice(["", "", "salt"]),
        seed=random.randrange(1000),
        eos_token_ids=(END,),
        grammar=random.choice(GRAMMARS) if form == "grammar" else "",
        **params,
    )


def run_mixed(engine: EngineCore, requests: list[EngineRequest], random: Random) -> Results:
    """Adds the requests between steps, and aborts some of them or some of their choices."""
    results: Results = defaultdict(Result)
    coming, added = list(requests), list[EngineRequest]()
    for _ in range(MAX_STEPS):
        while coming and random.random() < 0.5:
            added.append(coming.pop(0))
            engine.add(added[-1])
        if added and random.random() < 0.1:
            request = random.choice(added)
            engine.abort(request.request_id, random.choice([None, random.randrange(request.n)]))
        collect(results, engine.step())
        if not coming and not engine.has_unfinished():
            return results
    raise AssertionError(f"still unfinished after {MAX_STEPS} steps: {engine.stats()}")


def assert_is_part(result: Result, alone: Result, request: EngineRequest) -> None:
    """Asserts that a result equals the result alone, or its beginning after an abort or a fault."""
    assert result.num_after_final == 0
    num_tokens, num_scored = len(result.token_ids), len(result.prompt_logprobs)
    assert result.token_ids == alone.token_ids[:num_tokens]
    assert result.logprobs == alone.logprobs[: len(result.logprobs)]
    assert result.prompt_logprobs == alone.prompt_logprobs[:num_scored]
    assert result.final.num_cached_tokens < len(request.prompt_token_ids)
    assert len(result.logprobs) == (0 if request.params.num_logprobs is None else num_tokens)
    if result.finish_reason in (FinishReason.ABORT, FinishReason.ERROR):
        return
    assert result.finish_reason == alone.finish_reason
    assert result.final.score == alone.final.score
    assert (result.final.error, result.final.error_param) == (
        alone.final.error,
        alone.final.error_param,
    )
    assert (num_tokens, num_scored) == (len(alone.token_ids), len(alone.prompt_logprobs))
    # then the first choice's only
    assert result.num_timings == alone.num_timings or request.params.max_tokens == 0


@pytest.mark.parametrize("is_shaky", [False, True])
@pytest.mark.parametrize("prefix_caching", [True, False])
@pytest.mark.parametrize(("seed", "num_kept"), SEEDS)
def test_each_request_gets_the_same_as_alone(
    compiler: GrammarCompiler,
    roomy: EngineCore,
    *,
    seed: int,
    num_kept: int | None,
    prefix_caching: bool,
    is_shaky: bool,
) -> None:
    """Some of the models have recurrent states, and cache up to `num_kept` of them."""
    random = Random(seed)
    common = [random.randrange(300) for _ in range(20)]
    requests = [mixed_request(random, common) for _ in range(30)]
    sizes = {
        "num_blocks": 32,
        "max_num_seqs": 6,
        "max_num_batched_tokens": 12,
        "num_kept_states": num_kept,
    }
    runner = ShakyRunner(random if is_shaky else None, **sizes)
    engine = EngineCore(runner, prefix_caching=prefix_caching, grammars=compiler)

    results = run_mixed(engine, requests, random)

    assert engine.stats().num_used_state_slots <= (num_kept or 0)
    assert (
        engine.stats().num_used_blocks
        == engine.stats().num_running
        == engine.stats().num_waiting
        == 0
    )
    assert max(batch.past_lens.size for batch in runner.batches) <= 6
    assert max(batch.token_ids.size for batch in runner.batches) <= 12
    for request in requests:
        for index, alone in enumerate(run_alone(roomy, request)):
            assert_is_part(results[request.request_id, index], alone, request)
            assert (
                is_shaky
                or results[request.request_id, index].finish_reason is not FinishReason.ERROR
            )


def with_prediction(request: EngineRequest, outputs: list[Result], random: Random) -> EngineRequest:
    """Returns the request with a prediction: one choice's output with a few tokens changed."""
    token_ids = [
        each if random.random() < 0.9 else random.randrange(300)
        for each in random.choice(outputs).token_ids
    ]
    params = SpeculationParams(
        predicted_token_ids=token_ids,
        max_proposed_tokens=random.choice([None, None, 1, 5]),
        max_ngram_size=random.choice([None, None, 1, 3]),
    )
    return msgspec.structs.replace(request, speculation=params)


@pytest.mark.parametrize("is_shaky", [False, True])
@pytest.mark.parametrize("prefix_caching", [True, False])
@pytest.mark.parametrize(("seed", "num_kept"), SEEDS)
def test_proposed_tokens_change_nothing(
    compiler: GrammarCompiler,
    roomy: EngineCore,
    *,
    seed: int,
    num_kept: int | None,
    prefix_caching: bool,
    is_shaky: bool,
) -> None:
    """Further rows cost nearly nothing, so as many tokens as possible are proposed."""
    random = Random(seed)
    common = [random.randrange(300) for _ in range(20)]
    requests, outputs = [], {}
    for _ in range(30):
        request = mixed_request(random, common)
        outputs[request.request_id] = run_alone(roomy, request)
        requests.append(with_prediction(request, outputs[request.request_id], random))
    sizes = {
        "num_blocks": 32,
        "max_num_seqs": 6,
        "max_num_batched_tokens": 12,
        "num_kept_states": num_kept,
    }
    speculation = Speculation(costs=FREE)
    engine = EngineCore(
        ShakyRunner(random if is_shaky else None, **sizes),
        prefix_caching=prefix_caching,
        grammars=compiler,
        speculation=speculation,
    )

    results = run_mixed(engine, requests, random)

    stats = engine.stats()
    assert stats.num_used_state_slots <= (num_kept or 0)
    assert stats.num_used_blocks == stats.num_running == stats.num_waiting == 0
    assert 0 < stats.num_accepted_tokens < stats.num_draft_tokens
    for request in requests:
        for index, alone in enumerate(outputs[request.request_id]):
            result = results[request.request_id, index]
            assert_is_part(result, alone, request)
            assert is_shaky or result.finish_reason is not FinishReason.ERROR
            assert 0 <= result.final.num_accepted_tokens <= result.final.num_proposed_tokens
