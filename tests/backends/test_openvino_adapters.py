"""Compares adapters with checkpoints into whose weights they are merged."""

import gc
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.graph.adapter_shape import HEAD, AdapterLimits
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.checkpoint.weight_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.adapters import AdapterPart
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.errors import ModelLoadError
from ouzel.serve.engine_factories import load_adapters
from ouzel.types.engine_messages import AdapterFailed, AdapterLoaded, AdapterUnloaded
from tests.backends import GOLDEN_NAMES, of_kinds
from tests.backends.adapters import (
    ADAPTER_PARTS,
    AdaptedRunner,
    RandomAdapter,
    merge,
    random_adapter,
    random_parts,
    read_shape,
)
from tests.backends.conftest import long_context, read_golden
from tests.backends.forward import Driver, Logits, median_error, relative_error
from tests.backends.quantize import load as load_tensors
from tests.backends.quantize import save
from tests.cores import share_of_cores
from tests.engine.drafting import FREE
from tests.engine.requests import make_request, run, run_alone, with_adapter
from tests.release_only import release_only

RANK = 4

# llama-bias has biases; deepseek-v2 stores rows in another order.
CHECKED = of_kinds("adapters of other families", GOLDEN_NAMES, ["llama-bias", "deepseek-v2"])
GOLDEN_ADAPTERS = Path(__file__).parent / "golden_adapters"  # training/golden/make_adapter.py


def load(
    directory: Path,
    cache_dir: Path,
    max_loras: int,
    weights: str = "f32",
    *,
    lora: tuple[Path, ...] = (),
    parts: tuple[AdapterPart, ...] = (),
) -> OpenVINORunner:
    """Loads a model that computes in f32 if the weights are f32, else in the default precision.

    The model takes the parts of the adapters in `lora`, and `parts`.
    """
    config = ModelConfig(
        model=str(directory),
        weights=weights,
        cache_dir=str(cache_dir),
        max_loras=max_loras,
        max_lora_rank=RANK,
        lora=tuple(f"{path.name}={path}" for path in lora),
        lora_parts=parts,
        max_model_len=long_context(directory),
    )
    dtype: Literal["f32", "auto"] = "f32" if weights == "f32" else "auto"
    engine = EngineConfig(
        precision=dtype, kv_cache_dtype=dtype, kv_cache_gib=0.02, num_threads=share_of_cores()
    )
    runner = create_runner(config, engine)
    assert isinstance(runner, OpenVINORunner)
    return runner


def compute_logits(runner: OpenVINORunner | AdaptedRunner, prompt: list[int]) -> Logits:
    """Computes a prompt in two chunks, and returns the logits of the second.

    In the first chunk, which samples no row, the last layer has no rows.
    """
    driver = Driver(runner)
    sequence = driver.sequence()
    driver.step([(sequence, prompt[:5])], rows="none")
    return driver.step([(sequence, prompt[5:])], rows="all")


@pytest.mark.parametrize("name", CHECKED)
def test_logits_with_an_adapter_agree_with_merged_weights(
    name: str, cache_dir: Path, tmp_path: Path
) -> None:
    golden = read_golden(name)
    adapter = random_adapter(golden.directory, seed=1)  # its rank is below the largest rank
    merged = merge(golden.directory, adapter.deltas(), tmp_path / "merged")
    runner = load(golden.directory, cache_dir, max_loras=2)
    runner.fill_adapter_slot(1, str(adapter.write(tmp_path / "adapter")))

    expected = compute_logits(load(merged, tmp_path, 0), golden.prompt)
    assert relative_error(compute_logits(AdaptedRunner(runner, 1), golden.prompt), expected) < 1e-5
    unadapted = compute_logits(load(golden.directory, cache_dir, 0), golden.prompt)
    assert relative_error(compute_logits(runner, golden.prompt), unadapted) < 2e-6
    assert relative_error(expected, unadapted) > 0.1


@pytest.mark.parametrize("name", CHECKED)
def test_every_part_of_an_adapter_agrees_with_merged_weights(
    name: str, cache_dir: Path, tmp_path: Path
) -> None:
    golden = read_golden(name)
    adapter, deltas = random_parts(golden.directory, AdapterLimits(RANK, frozenset(ADAPTER_PARTS)))
    merged = merge(golden.directory, deltas, tmp_path / "merged")
    path = adapter.write(tmp_path / "adapter")
    runner = load(golden.directory, cache_dir, max_loras=1, parts=ADAPTER_PARTS)
    runner.fill_adapter_slot(0, str(path))

    expected = compute_logits(load(merged, tmp_path, 0), golden.prompt)
    assert relative_error(compute_logits(AdaptedRunner(runner, 0), golden.prompt), expected) < 1e-5
    unadapted = compute_logits(load(golden.directory, cache_dir, 0), golden.prompt)
    assert relative_error(compute_logits(runner, golden.prompt), unadapted) < 2e-6
    assert relative_error(expected, unadapted) > 0.1


@dataclass(frozen=True)
class GoldenAdapter:
    """An adapter that PEFT wrote, and the logits of PEFT's model."""

    path: Path
    checkpoint: Path
    prompt: list[int]
    logits: Logits


def read_golden_adapter(name: str) -> GoldenAdapter:
    path = GOLDEN_ADAPTERS / name
    with np.load(path / "golden.npz") as arrays:
        checkpoint = read_golden(str(arrays["checkpoint"])).directory
        return GoldenAdapter(path, checkpoint, arrays["prompt"].tolist(), arrays["logits"])


ADAPTER_NAMES = sorted(path.name for path in GOLDEN_ADAPTERS.iterdir())


@pytest.mark.parametrize("name", ADAPTER_NAMES)
def test_logits_with_an_adapter_agree_with_peft(name: str, cache_dir: Path) -> None:
    """The adapters have every part that Ouzel supports, alone and together."""
    golden = read_golden_adapter(name)
    runner = load(golden.checkpoint, cache_dir, 2, lora=(golden.path,))
    runner.fill_adapter_slot(1, str(golden.path))
    expected = golden.logits[5:]
    adapted = compute_logits(AdaptedRunner(runner, 1), golden.prompt)
    assert relative_error(adapted, expected) < 1e-5
    without = compute_logits(runner, golden.prompt)
    assert relative_error(without, expected) > 0.05
    plain = compute_logits(load(golden.checkpoint, cache_dir, 0), golden.prompt)
    assert relative_error(without, plain) < 2e-6

    runner.clear_adapter_slot(1)
    assert relative_error(compute_logits(AdaptedRunner(runner, 1), golden.prompt), plain) < 2e-6


def test_an_adapter_of_another_model_is_refused_by_its_copy_of_the_embedding(
    cache_dir: Path, tmp_path: Path
) -> None:
    golden = read_golden_adapter("dora-everywhere")
    path = shutil.copytree(golden.path, tmp_path / "adapter")
    tensors = load_tensors(path / ADAPTER_WEIGHTS)
    name = "base_model.model.model.embed_tokens.base_layer.weight"
    dtype, values = tensors[name]
    save(path / ADAPTER_WEIGHTS, tensors | {name: (dtype, values[:, ::-1].copy())})
    runner = load(golden.checkpoint, cache_dir, 1, lora=(golden.path,))
    with pytest.raises(ModelLoadError, match="the adapter was trained on another model"):
        runner.fill_adapter_slot(0, str(path))


def test_trained_tokens_of_a_head_take_its_ranks(cache_dir: Path, tmp_path: Path) -> None:
    golden = read_golden_adapter("tokens")
    path = shutil.copytree(golden.path, tmp_path / "adapter")
    tensors = load_tensors(path / ADAPTER_WEIGHTS)
    name = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    dtype, values = tensors[name]
    save(path / ADAPTER_WEIGHTS, tensors | {name: (dtype, np.concatenate([values, values]))})
    config = json.loads((path / ADAPTER_CONFIG).read_text())
    config["trainable_token_indices"] += [100, 101, 102]
    (path / ADAPTER_CONFIG).write_text(json.dumps(config))
    runner = load(golden.checkpoint, cache_dir, 1, lora=(golden.path,))
    with pytest.raises(ModelLoadError, match="lm_head has rank 6, must be from 1 to max_lora_rank"):
        runner.fill_adapter_slot(0, str(path))


def test_a_graph_has_inputs_only_for_the_parts_of_its_adapters() -> None:
    directory = read_golden("llama-bias").directory
    plain = read_shape(directory, AdapterLimits(RANK))
    assert (plain.vectors, plain.norms, plain.embedding) == ({}, {}, None)
    assert HEAD not in [matrix.name for matrix in plain.matrices]
    biases = read_shape(directory, AdapterLimits(RANK, frozenset({"bias"})))
    assert all(name.startswith("adapters_shift.") for name in biases.vectors)
    assert biases.slot_bytes - plain.slot_bytes == 4 * sum(
        matrix.num_rows for matrix in plain.matrices
    )


@pytest.mark.parametrize("checkpoint", ["qwen3", "llama"])
def test_a_batch_mixes_adapters_of_every_kind(checkpoint: str, cache_dir: Path) -> None:
    """Each sequence has the logits of PEFT's model with its own adapter; one has no adapter."""
    goldens = [
        golden
        for golden in map(read_golden_adapter, ADAPTER_NAMES)
        if golden.checkpoint.name == checkpoint
    ]
    base = read_golden(checkpoint)
    paths = tuple(golden.path for golden in goldens)
    runner = load(base.directory, cache_dir, len(paths), lora=paths)
    for slot, path in enumerate(paths):
        runner.fill_adapter_slot(slot, str(path))
    prompts = [base.prompt, *(golden.prompt for golden in goldens)]
    driver = Driver(AdaptedRunner(runner, *range(-1, len(paths))))
    sequences = [driver.sequence() for _ in prompts]
    rows = driver.step(list(zip(sequences, prompts, strict=True)), rows="all")

    expected = [compute_logits(load(base.directory, cache_dir, 0), base.prompt)]
    expected += [golden.logits for golden in goldens]
    assert len(goldens) >= 2
    for prompt, logits in zip(prompts, expected, strict=True):
        own, rows = rows[: len(prompt)], rows[len(prompt) :]
        assert relative_error(own[-len(logits) :], logits) < 1e-5


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_dora_beside_rounded_weights_has_the_error_of_the_model(
    weights: str, cache_dir: Path
) -> None:
    golden = read_golden_adapter("dora")
    runner = load(golden.checkpoint, cache_dir, 1, weights, lora=(golden.path,))
    runner.fill_adapter_slot(0, str(golden.path))
    adapted = compute_logits(AdaptedRunner(runner, 0), golden.prompt)
    exact = compute_logits(load(golden.checkpoint, cache_dir, 0), golden.prompt)
    of_model = median_error(compute_logits(runner, golden.prompt), exact)
    assert median_error(adapted, golden.logits[5:]) < max(1.5 * of_model, 0.04)


def test_an_adapter_that_needs_another_part_is_refused_with_the_option(cache_dir: Path) -> None:
    golden = read_golden_adapter("dora")
    engine = EngineCore(load(golden.checkpoint, cache_dir, 1))
    engine.adapters.load("dora", str(golden.path))
    run(engine)
    [event] = engine.adapters.take_events()
    assert isinstance(event, AdapterFailed)
    assert "start it with --lora-parts dora, or with --lora and this adapter" in event.message

    engine = EngineCore(load(golden.checkpoint, cache_dir, 1, parts=("dora",)))
    engine.adapters.load("dora", str(golden.path))
    run(engine)
    assert engine.adapters.take_events() == [AdapterLoaded("dora")]


@pytest.mark.parametrize("weights", ["int8", *release_only("adapters beside bf16 weights", "bf16")])
def test_compressed_weights_have_adapters_beside_them(
    weights: str, cache_dir: Path, tmp_path: Path
) -> None:
    """Ouzel rounds the base and the adapter separately, but merged weights together."""
    golden = read_golden("qwen3")
    adapter = random_adapter(golden.directory, seed=1)
    merged = merge(golden.directory, adapter.deltas(), tmp_path / "merged")
    exact = compute_logits(load(merged, tmp_path, 0), golden.prompt)

    runner = load(golden.directory, cache_dir, 1, weights)
    runner.fill_adapter_slot(0, str(adapter.write(tmp_path / "adapter")))
    error = median_error(compute_logits(AdaptedRunner(runner, 0), golden.prompt), exact)
    of_merged = median_error(
        compute_logits(load(merged, tmp_path, 0, weights), golden.prompt), exact
    )
    assert error < max(1.5 * of_merged, 0.04)


def test_a_batch_mixes_adapters_and_the_model_as_it_is(cache_dir: Path, tmp_path: Path) -> None:
    """Computes prompts of different lengths, then one token each, in distant adapter slots."""
    golden = read_golden("llama")
    runner = load(golden.directory, cache_dir, max_loras=5)
    for slot in (1, 2, 4):
        adapter = random_adapter(golden.directory, seed=slot)
        runner.fill_adapter_slot(slot, str(adapter.write(tmp_path / str(slot))))
    slots = (4, -1, 1, 1, -1, 4)
    lengths = (9, 3, 17, 5, 12, 1)

    def steps(runner: AdaptedRunner, lengths: tuple[int, ...]) -> Logits:
        driver = Driver(runner)
        sequences = [driver.sequence() for _ in lengths]
        first = driver.step(
            [
                (each, golden.prompt[:length])
                for each, length in zip(sequences, lengths, strict=True)
            ]
        )
        return np.stack([first, driver.step([(each, [7]) for each in sequences])], axis=1)

    together = steps(AdaptedRunner(runner, *slots), lengths)
    for row, slot, length in zip(together, slots, lengths, strict=True):
        assert relative_error(row, steps(AdaptedRunner(runner, slot), (length,))[0]) < 1e-5


def test_a_slot_is_empty_again_when_it_is_cleared(cache_dir: Path, tmp_path: Path) -> None:
    golden = read_golden("llama")
    runner = load(golden.directory, cache_dir, max_loras=2)
    unadapted = compute_logits(runner, golden.prompt)
    whole = random_adapter(golden.directory, seed=1, rank=RANK).write(tmp_path / "whole")
    part = random_adapter(golden.directory, 2, takes=lambda name: name.endswith("v_proj")).write(
        tmp_path / "part"
    )

    runner.fill_adapter_slot(1, str(part))
    expected = compute_logits(AdaptedRunner(runner, 1), golden.prompt)
    runner.fill_adapter_slot(0, str(whole))
    runner.clear_adapter_slot(0)
    assert relative_error(compute_logits(AdaptedRunner(runner, 0), golden.prompt), unadapted) < 2e-6
    runner.fill_adapter_slot(0, str(part))
    assert relative_error(compute_logits(AdaptedRunner(runner, 0), golden.prompt), expected) < 1e-6


def test_the_digest_tells_contents_and_scales_apart(cache_dir: Path, tmp_path: Path) -> None:
    golden = read_golden("llama")
    runner = load(golden.directory, cache_dir, max_loras=1)
    adapter = random_adapter(golden.directory, seed=1)
    named = RandomAdapter(adapter.halves, {"base_model_name_or_path": "another"})
    others = [
        random_adapter(golden.directory, seed=2),
        RandomAdapter(adapter.halves, {"lora_alpha": 7}),
        RandomAdapter(adapter.halves, {"alpha_pattern": {"q_proj": 7}}),
    ]

    def digest(number: int, each: RandomAdapter) -> bytes:
        return runner.fill_adapter_slot(0, str(each.write(tmp_path / str(number))))

    digests = [digest(number, each) for number, each in enumerate([adapter, named, *others])]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_unloading_frees_the_memory_of_an_adapter(cache_dir: Path, tmp_path: Path) -> None:
    """Unloading frees at least three quarters of the adapters' memory.

    Rounding to pages and malloc keep less than a quarter.
    """
    golden = read_golden("llama")
    rank = 512
    adapter = random_adapter(golden.directory, seed=1, rank=rank)
    path = str(adapter.write(tmp_path / "adapter"))
    config = ModelConfig(
        model=str(golden.directory),
        weights="f32",
        cache_dir=str(cache_dir),
        max_loras=8,
        max_lora_rank=rank,
    )
    engine = EngineCore(
        create_runner(
            config, EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)
        )
    )
    slot_bytes = 4 * sum(a.size + b.size for a, b in adapter.halves.values())

    def load_and_use(*names: str) -> None:
        for name in names:
            engine.adapters.load(name, path)
        run(engine)
        assert engine.adapters.take_events() == [AdapterLoaded(name) for name in names]
        run_alone(engine, with_adapter(make_request(golden.prompt), names[0]))

    def unload(*names: str) -> None:
        for name in names:
            engine.adapters.unload(name)
        run(engine)
        assert engine.adapters.take_events() == [AdapterUnloaded(name) for name in names]

    def resident_bytes() -> int:
        return int(psutil.Process().memory_info().rss)

    load_and_use("first")
    unload("first")
    gc.collect()
    before = resident_bytes()
    names = [f"adapter-{index}" for index in range(8)]
    load_and_use(*names)
    loaded = resident_bytes()
    unload(*names)
    assert loaded - before > 0.75 * 8 * slot_bytes
    assert loaded - resident_bytes() > 0.75 * 8 * slot_bytes
    load_and_use("again")


@pytest.mark.parametrize("weights", ["int8", *release_only("adapters that overflow in f32", "f32")])
def test_an_adapter_that_overflows_is_refused_and_leaves_no_trace(
    weights: str, cache_dir: Path, tmp_path: Path
) -> None:
    """The trial writes infinite numbers into a block, and the next request uses the same block."""
    golden = read_golden("llama")
    engine = EngineCore(load(golden.directory, cache_dir, 1, weights))
    expected = run_alone(engine, make_request(golden.prompt[:5], max_tokens=12))[0].token_ids
    sound = random_adapter(golden.directory, seed=1)
    huge = {
        name: (a * np.float32(1e19), b * np.float32(1e19)) for name, (a, b) in sound.halves.items()
    }
    path = RandomAdapter(huge, {}).write(tmp_path / "huge")
    engine.adapters.load("huge", str(path))
    run(engine)
    [event] = engine.adapters.take_events()
    assert isinstance(event, AdapterFailed)
    assert event.message.startswith(
        "adapter 'huge' makes the model overflow: in a trial of 16 tokens"
    )
    assert (
        run_alone(engine, make_request(golden.prompt[:5], max_tokens=12))[0].token_ids == expected
    )

    engine.adapters.load("sound", str(sound.write(tmp_path / "sound")))
    run(engine)
    assert engine.adapters.take_events() == [AdapterLoaded("sound")]
    assert run_alone(engine, with_adapter(make_request(golden.prompt), "sound"))[0].token_ids
    engine.adapters.unload("sound")
    run(engine)
    with pytest.raises(
        ModelLoadError, match=f"^lora huge={path}: adapter 'huge' makes the model overflow: "
    ):
        load_adapters(engine, {"huge": str(path)})  # the function that a starting server calls


def test_all_features_of_the_engine_work_with_adapters(cache_dir: Path, tmp_path: Path) -> None:
    """With chunks, prefix caching, proposals and several choices, greedy tokens stay the same.

    The reference is a model with merged weights.
    """
    golden = read_golden("qwen3")
    adapter = random_adapter(golden.directory, seed=3)
    path = adapter.write(tmp_path / "adapter")
    merged = EngineCore(
        load(merge(golden.directory, adapter.deltas(), tmp_path / "merged"), tmp_path, 0)
    )
    # further rows of a step cost next to nothing, so proposals are made
    speculation = Speculation(costs=FREE)
    engine = EngineCore(load(golden.directory, cache_dir, 1), speculation=speculation)
    engine.adapters.load("a", str(path))
    run(engine)

    requests = [
        make_request(golden.prompt[:length], max_tokens=12, n=2) for length in (40, 40, 33, 3)
    ]
    mixed = [with_adapter(request, name) for request in requests for name in ("a", "")]
    results = run(engine, mixed)
    base = EngineCore(load(golden.directory, cache_dir, 0))
    for request in mixed:
        expected = run_alone(merged if request.adapter else base, with_adapter(request, ""))
        assert [results[request.request_id, index].token_ids for index in range(2)] == [
            each.token_ids for each in expected
        ]
    assert engine.stats().num_prefix_hit_tokens > 0
    assert engine.stats().num_draft_tokens > 0
