"""Compares EAGLE-3 heads with the formulas in torch, and answers with a head with answers without.

training/golden/make_eagle.py wrote the heads, which draft for checkpoints of `golden/`.
"""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.draft_head import write_head
from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, HiddenRunner
from ouzel.engine.cache.prefix_store import open_prefix_store
from ouzel.engine.core import EngineCore
from ouzel.engine.flat_batch import build_flat_batch
from ouzel.serve.engine_factories import openvino_engine
from ouzel.serve.measuring import Question, measure
from ouzel.types.engine_info import EngineInfo
from tests.backends import of_kinds
from tests.backends.eagle_heads import HEADS, MODELS, TARGETS, load, run_entries
from tests.engine.drafting import FREE_PREDICTION
from tests.engine.requests import make_request, run, run_alone


@pytest.fixture(
    scope="module",
    params=of_kinds("EAGLE-3 heads of other programs", sorted(TARGETS), ["llama-specforge"]),
)
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
    runner.copy_blocks(table, other)
    copied = run_entries(runner, [(other, 25, token_ids[25:])], rows[25:40])
    assert np.array_equal(copied, last)
    logits = last[-1:]
    for place, token_id in enumerate(golden["drafts"].tolist()):
        expected = golden["chained_logits"][place]
        assert_close(logits[0, ids], expected)
        assert int(logits[0].argmax()) == token_id
        assert runner.prediction is not None
        row = runner.prediction.hidden_rows[-1:].copy()
        logits = run_entries(runner, [(table, 40 + place, [token_id])], row)


@pytest.mark.parametrize("head", sorted(TARGETS), indirect=True)
def test_entries_and_drafts_equal_the_formulas(
    head: Path, model: Path, golden: dict[str, NDArray[Any]], cache_dir: Path
) -> None:
    check_head(load(head, model, cache_dir), golden)


def make_engine(runner: OpenVINORunner, *, drafts: bool = True) -> EngineCore:
    return EngineCore(runner, speculation=FREE_PREDICTION if drafts else None)


@pytest.fixture(scope="module")
def runner(head: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenVINORunner:
    return load(head, model, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def plain(model: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenVINORunner:
    return load(None, model, tmp_path_factory.mktemp("plain"))


def test_the_logits_of_the_model_are_the_same_bits(
    runner: OpenVINORunner, plain: OpenVINORunner, golden: dict[str, NDArray[Any]]
) -> None:
    prompt = golden["prompt"].tolist()
    batch = build_flat_batch([([0, 1], 0, prompt)], np.arange(40), runner.info.block_size)
    assert np.array_equal(runner.run(batch), plain.run(batch))


@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.7, "top_k": 9, "seed": 4}]
)
def test_answers_are_the_same_with_and_without_a_head(
    params: dict[str, Any],
    runner: OpenVINORunner,
    plain: OpenVINORunner,
    golden: dict[str, NDArray[Any]],
) -> None:
    """Several requests, some with a shared prompt from the cache, with one and two choices."""
    prompt, greedy = golden["prompt"].tolist(), golden["greedy"].tolist()

    def requests() -> list[Any]:
        prompts = [prompt, prompt, prompt[:33], prompt + greedy[:5], prompt[3:]]
        made = [
            make_request(each, max_tokens=64 - len(each[40:]), ignore_eos=True, **params)
            for each in prompts
        ]
        return [*made, make_request(prompt, n=2, max_tokens=20, ignore_eos=True, **params)]

    outputs = []
    for engine, drafts in ((make_engine(runner), True), (make_engine(plain, drafts=False), False)):
        first = run(engine, requests()[:1])
        results = {**first, **run(engine, requests())}
        outputs.append([result.token_ids for result in results.values()])
        stats = engine.stats()
        assert stats.num_prefix_hit_tokens > 0
        assert (stats.num_draft_tokens > 50) == drafts
    assert outputs[0] == outputs[1]
    if not params:
        assert outputs[0][0] == greedy


def test_preempted_requests_get_their_answers(
    head: Path, model: Path, golden: dict[str, NDArray[Any]], cache_dir: Path
) -> None:
    engine = make_engine(load(head, model, cache_dir, num_blocks=9))
    prompt, greedy = golden["prompt"].tolist(), golden["greedy"].tolist()
    known = [0, 24, 25, 63]
    requests = [
        make_request(
            prompt + greedy[:number], max_tokens=64 - number, ignore_eos=True, cache_salt=salt
        )
        for number in known
        for salt in ("", f"{number}")
    ]
    results = run(engine, requests)
    for request in requests:
        begin = len(request.prompt_token_ids) - len(prompt)
        assert results[request.request_id, 0].token_ids == greedy[begin:]
    stats = engine.stats()
    assert stats.num_preemptions > 0
    assert stats.num_draft_tokens > 50
    assert stats.num_used_blocks == 0


def test_drafts_of_the_engine_are_the_drafts_of_the_formulas(
    runner: OpenVINORunner, golden: dict[str, NDArray[Any]]
) -> None:
    """The answer is forced to the head's own drafts, so all of them are accepted."""
    drafts = golden["drafts"].tolist()
    script = Forced(runner, len(golden["prompt"]), [int(golden["greedy"][0]), *drafts])
    request = make_request(golden["prompt"].tolist(), max_tokens=5, ignore_eos=True)
    [result] = run_alone(EngineCore(script, speculation=FREE_PREDICTION), request)
    assert result.token_ids == [int(golden["greedy"][0]), *drafts]
    assert result.final.num_accepted_tokens >= 3


class Forced:
    """A runner whose logits say a script from a position on."""

    def __init__(self, runner: OpenVINORunner, begin: int, script: list[int]) -> None:
        self._runner, self._begin, self._script = runner, begin, script

    @property
    def info(self) -> EngineInfo:
        return self._runner.info

    @property
    def prediction(self) -> HiddenRunner | None:
        return self._runner.prediction

    @property
    def hidden_rows(self) -> NDArray[np.float32]:
        return self._runner.hidden_rows

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = self._runner.run(batch)
        for row, position in enumerate(batch.positions[batch.sampled_rows].tolist()):
            place = position + 1 - self._begin
            if 0 <= place < len(self._script):
                logits[row, self._script[place]] = 1e6
        return logits

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        """Does nothing: the owner of the wrapped runner closes it."""


def test_a_head_from_the_cache_is_the_same_head(
    head: Path, model: Path, golden: dict[str, NDArray[Any]], tmp_path: Path
) -> None:
    check_head(load(head, model, tmp_path), golden)
    [entry] = tmp_path.glob(f"{head.name}-*")
    before = entry.stat().st_mtime_ns
    check_head(load(head, model, tmp_path), golden)
    assert entry.stat().st_mtime_ns == before
    (entry / "index.json").write_text("broken")
    check_head(load(head, model, tmp_path), golden)


def test_the_cache_of_blocks_has_the_entries_of_the_head(
    head: Path, model: Path, runner: OpenVINORunner, plain: OpenVINORunner
) -> None:
    assert runner.info.cache_identity != plain.info.cache_identity
    assert runner.cache_rows["block"].row_bytes > plain.cache_rows["block"].row_bytes
    without, inspected = (
        inspect_model(
            ModelConfig(model=str(model), draft_model=draft, weights="f32"),
            EngineConfig(kv_cache_gib=0.02, precision="f32", kv_cache_dtype="f32"),
        )
        for draft in ("", str(head))
    )
    block_bytes = runner.info.block_size * inspected.kv_token_bytes
    assert block_bytes == runner.cache_rows["block"].row_bytes
    assert (inspected.num_parameters, inspected.weights) == (
        without.num_parameters,
        without.weights,
    )
    assert without.draft is None
    assert inspected.draft is not None and inspected.draft.num_parameters > 0


def test_a_prompt_from_the_disk_has_its_entries(
    golden: dict[str, NDArray[Any]], head: Path, model: Path, cache_dir: Path, tmp_path: Path
) -> None:
    prompt, answer = golden["prompt"].tolist(), golden["drafts"].tolist()
    answer = [int(golden["greedy"][0]), *answer]
    for num_cached in (0, 32):
        runner = load(head, model, cache_dir)
        forced = Forced(runner, len(prompt), answer)
        store = open_prefix_store(runner, str(tmp_path), max_bytes=2**30)
        engine = EngineCore(forced, speculation=FREE_PREDICTION, store=store)
        request = make_request(prompt, max_tokens=len(answer), ignore_eos=True)
        [result] = run_alone(engine, request)
        assert result.token_ids == answer
        assert result.final.num_cached_tokens == num_cached
        assert result.final.num_accepted_tokens >= 3
        engine.close()
        runner.close()


def test_the_option_enables_drafts(cache_dir: Path) -> None:
    options: dict[str, object] = {
        "model": {
            "model": str(MODELS / "llama"),
            "cache_dir": str(cache_dir),
            "draft_model": str(HEADS / "llama-specforge"),
        },
        "engine": {"kv_cache_gib": 0.02, "prompt_lookup": False},
    }
    engine = openvino_engine(options)
    assert engine.info.has_drafts
    assert not engine.info.has_prompt_lookup
    [result] = run_alone(engine, make_request(range(40), max_tokens=20, ignore_eos=True))
    assert len(result.token_ids) == 20
    engine.close()


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_a_compressed_head_drafts_much_the_same(
    weights: str, head: Path, model: Path, cache_dir: Path
) -> None:
    """The engine has the precision and the KV cache of a server."""
    with np.load(head / "golden.npz") as golden, np.load(model / "golden.npz") as of_model:
        features, expected, ids = (golden[name] for name in ("features", "entry_logits", "ids"))
        token_ids = [*of_model["prompt"].tolist()[1:], int(of_model["greedy"][0])]
    options = ModelConfig(
        model=str(model), draft_model=str(head), weights=weights, cache_dir=str(cache_dir)
    )
    runner = create_runner(options, EngineConfig(kv_cache_gib=0.02, precision="int8"))
    assert isinstance(runner, OpenVINORunner)
    logits = run_entries(runner, [([0, 1, 2], 0, token_ids)], features)[:, ids]
    assert np.corrcoef(logits.ravel(), expected.ravel())[0, 1] > (
        0.999 if weights == "int8" else 0.96
    )


def test_the_size_of_a_model_includes_its_head() -> None:
    model = ModelConfig(model=str(MODELS / "llama"), weights="f32")
    engine = EngineConfig(kv_cache_gib=0.02, precision="f32", kv_cache_dtype="f32")
    without, size = (
        measure(Question(msgspec.structs.replace(model, draft_model=draft), engine))
        for draft in ("", str(HEADS / "llama-specforge"))
    )
    assert size.weight_bytes > without.weight_bytes


def test_a_random_head_of_the_benchmarks_fits_its_model(tmp_path: Path, cache_dir: Path) -> None:
    write_head(MODELS / "qwen3", tmp_path, 100)
    runner = load(tmp_path, MODELS / "qwen3", cache_dir)
    logits = run_entries(runner, [([0], 0, [1, 2, 3])], np.ones((3, 64), np.float32))
    assert np.isfinite(logits[:, :100]).all()
    assert np.isneginf(logits[:, 100:]).all()
