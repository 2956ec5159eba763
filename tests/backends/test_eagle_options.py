"""Checks EAGLE-3 heads beside adapters, and heads and assistants in a deterministic engine."""

from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.types.engine_request import EngineRequest
from tests.backends.adapters import random_adapter
from tests.backends.eagle_heads import HEADS, MODELS, load
from tests.engine.drafting import FOR_NOTHING, FREE, FREE_PREDICTION
from tests.engine.requests import make_request, run, run_alone, with_adapter

HEAD, MODEL = HEADS / "llama-specforge", MODELS / "llama"
ASSISTANTS = MODELS.parent / "golden_assistant"


@pytest.fixture(scope="module")
def prompt() -> list[int]:
    with np.load(MODEL / "golden.npz") as arrays:
        token_ids: list[int] = arrays["prompt"].tolist()
        return token_ids


def test_answers_with_an_adapter_are_the_same_with_and_without_a_head(
    prompt: list[int], cache_dir: Path, tmp_path: Path
) -> None:
    path = random_adapter(MODEL, seed=1).write(tmp_path / "adapter")
    answers = []
    for head, speculation in ((None, None), (HEAD, FREE_PREDICTION)):
        engine = EngineCore(load(head, MODEL, cache_dir, max_loras=1), speculation=speculation)
        engine.adapters.load("adapter", str(path))
        run(engine)
        plain = make_request(prompt, max_tokens=40, ignore_eos=True)
        adapted = with_adapter(plain, "adapter")
        results = run(engine, [plain, adapted])
        answers.append([results[each.request_id, 0].token_ids for each in (plain, adapted)])
        for result in results.values():
            assert (result.final.num_proposed_tokens > 10) == (head is not None)
    assert answers[0] == answers[1]
    assert answers[0][0] != answers[0][1]


def test_a_deterministic_engine_with_a_head_keeps_the_bits_of_logprobs(
    prompt: list[int], cache_dir: Path
) -> None:
    check_bits(
        prompt,
        plain=EngineCore(load(None, MODEL, cache_dir, deterministic=True)),
        drafting=EngineCore(
            load(HEAD, MODEL, cache_dir, deterministic=True), speculation=FREE_PREDICTION
        ),
    )


@pytest.mark.parametrize("name", ["gemma4-shared", "gemma4-unified"])
def test_a_deterministic_engine_with_an_assistant_keeps_the_bits_of_logprobs(
    name: str, cache_dir: Path
) -> None:
    """The plain engine has the assistant too: one answer holds for the same options."""
    config = EngineConfig(
        precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02, deterministic=True
    )
    model = ModelConfig(
        model=str(MODELS / name),
        draft_model=str(ASSISTANTS / name),
        cache_dir=str(cache_dir),
        weights="f32",
    )
    speculation = Speculation(
        prompt_lookup=False, assists=True, costs=FREE, draft_costs=FOR_NOTHING
    )
    with np.load(MODELS / name / "golden.npz") as arrays:
        check_bits(
            arrays["prompt"].tolist(),
            plain=EngineCore(create_runner(model, config)),
            drafting=EngineCore(create_runner(model, config), speculation=speculation),
        )


def check_bits(prompt: list[int], *, plain: EngineCore, drafting: EngineCore) -> None:
    """Compares answers alone and beside others, with drafts and without them."""

    def requests() -> list[EngineRequest]:
        return [
            make_request(prompt[:length], max_tokens=30, ignore_eos=True, num_logprobs=2)
            for length in (40, 33, 7)
        ]

    runs = []
    for engine in (plain, drafting):
        alone = [run_alone(engine, request)[0] for request in requests()]
        others = requests()
        results = run(engine, others)
        together = [results[request.request_id, 0] for request in others]
        runs += [alone, together]
        # The engine stops drafting for a request whose drafts are refused: all requests count.
        num_proposed = sum(result.final.num_proposed_tokens for result in (*alone, *together))
        assert (num_proposed > 10) == (engine is drafting)
    outputs = [[(each.token_ids, each.logprobs) for each in results] for results in runs]
    assert all(output == outputs[0] for output in outputs)
