"""Compares EAGLE-3 heads with the formulas in torch, and answers with a head with answers without.

training/golden/make_eagle.py wrote the heads, which draft for checkpoints of `golden/`.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.core import EngineCore
from ouzel.engine.flat_batch import Span, build_flat_batch
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.speculation.rules.step_costs import StepCosts
from ouzel.errors import ModelLoadError
from ouzel.serve.engine_factories import openvino_engine
from tests.backends import quantize
from tests.backends.test_openvino_scheduling import FewBlocks
from tests.engine.requests import make_request, run, run_alone

HEADS = Path(__file__).parent / "golden_eagle"
MODELS = Path(__file__).parent / "golden"
# The model of each head.
TARGETS = {
    "llama-specforge": "llama",
    "qwen3-eagle": "qwen3",
    "gpt-oss-speculators": "gpt-oss",
    "qwen3-parts": "qwen3",
}
FREE = StepCosts((1, 100), (1.0, 1.01))
FOR_NOTHING = StepCosts((1, 100), (0.001, 0.00101))
SPECULATION = Speculation(prompt_lookup=False, predicts=True, costs=FREE, draft_costs=FOR_NOTHING)


def load(
    head: Path | None, model: Path, cache_dir: Path, *, num_blocks: int | None = None
) -> OpenVINORunner:
    runner = create_runner(
        ModelConfig(
            model=str(model),
            cache_dir=str(cache_dir),
            weights="f32",
            draft_model="" if head is None else str(head),
        ),
        EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02),
        num_blocks=num_blocks,
    )
    assert isinstance(runner, OpenVINORunner)
    return runner


@pytest.fixture(scope="module", params=sorted(TARGETS))
def head(request: pytest.FixtureRequest) -> Path:
    return HEADS / str(request.param)


@pytest.fixture(scope="module")
def model(head: Path) -> Path:
    return MODELS / TARGETS[head.name]


@pytest.fixture(scope="module")
def golden(head: Path, model: Path) -> dict[str, NDArray[Any]]:
    """Returns the arrays of the model and of the head."""
    with np.load(model / "golden.npz") as of_model, np.load(head / "golden.npz") as of_head:
        return {**of_model, **of_head}


def run_entries(
    runner: OpenVINORunner, spans: list[Span], rows: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Runs entries of the head; returns the logits of all of them."""
    assert runner.prediction is not None
    batch = build_flat_batch(spans, np.arange(len(rows)), runner.info.block_size)
    return runner.prediction.run(replace(batch, hidden_rows=rows)).copy()


def assert_close(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    """Allows a hundred thousandth of the largest value."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def check_head(runner: OpenVINORunner, golden: dict[str, NDArray[Any]]) -> None:
    """Compares features, entries and chained logits, in chunks and beside another sequence."""
    prompt, ids = golden["prompt"].tolist(), golden["ids"]
    table, other = [3, 1], [2, 0]
    batch = build_flat_batch(
        [(table, 0, prompt), (other, 0, prompt[:9])], np.arange(49), runner.info.block_size
    )
    logits = runner.run(batch)
    np.testing.assert_allclose(logits[:40], golden["logits"], atol=2e-4)
    rows = runner.hidden_rows.copy()
    assert_close(rows[:40], golden["features"])
    token_ids = [*prompt[1:], int(golden["greedy"][0])]
    first = run_entries(
        runner,
        [(other, 0, token_ids[:9]), (table, 0, token_ids[:25])],
        rows[[*range(40, 49), *range(25)]],
    )
    last = run_entries(runner, [(table, 25, token_ids[25:])], rows[25:40])
    entries = np.concatenate([first[9:], last])
    assert_close(entries[:, ids], golden["entry_logits"])
    left_out = np.setdiff1d(np.arange(runner.info.vocab_size), ids)
    assert np.isneginf(entries[:, left_out]).all()
    logits = last[-1:]
    for place, token_id in enumerate(golden["drafts"].tolist()):
        expected = golden["chained_logits"][place]
        assert_close(logits[0, ids], expected)
        assert int(logits[0].argmax()) == token_id
        assert runner.prediction is not None
        row = runner.prediction.hidden_rows[-1:].copy()
        logits = run_entries(runner, [(table, 40 + place, [token_id])], row)


def test_entries_and_drafts_equal_the_formulas(
    head: Path, model: Path, golden: dict[str, NDArray[Any]], cache_dir: Path
) -> None:
    check_head(load(head, model, cache_dir), golden)
