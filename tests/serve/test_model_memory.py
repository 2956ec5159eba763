"""A model's memory is measured once, kept on the disk, and planned within the limits."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.errors import ModelLoadError
from ouzel.lifecycle.turns import Limits
from ouzel.options.options import read_options
from ouzel.serve import model_sizes
from ouzel.serve.measuring import ModelSize, Question, measure
from ouzel.serve.model_host import ModelHost, has_kv_cache
from ouzel.serve.model_sizes import find_size
from ouzel.serve.on_demand_limits import plan_memory, read_limits
from ouzel.serve.open_models import CheckedModel, open_models
from ouzel.serve.start_plan import plan_start
from tests.backends.eagle_heads import copy_head_as_ir

GIB = 2**30
GOLDEN_SENTENCES = Path(__file__).parents[1] / "backends" / "golden_sentences"


def open_one(directory: Path, tmp_path: Path) -> CheckedModel:
    values = {"model": str(directory), "cache_dir": str(tmp_path / "cache")}
    [model] = open_models(read_options(values, {}))
    return model


def test_a_size_is_measured_once_until_the_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "model"
    shutil.copytree(MODEL_DIRECTORY, directory)
    model = open_one(directory, tmp_path)

    size = asyncio.run(find_size(model))
    assert size.weight_bytes > 10**6
    assert size.cache_bytes > size.weight_bytes
    assert size.max_model_len == 4096

    measured = []

    async def measure(question: object) -> ModelSize:
        measured.append(question)
        return size

    monkeypatch.setattr(model_sizes, "_measure", measure)
    assert asyncio.run(find_size(model)) == size
    assert measured == []
    (directory / "config.json").touch()
    asyncio.run(find_size(model))
    assert len(measured) == 1
    longer = replace(model.settings, engine=EngineConfig(max_num_seqs=3))
    asyncio.run(find_size(replace(model, settings=longer)))
    assert len(measured) == 2


def test_a_size_is_measured_again_if_the_draft_changes(tmp_path: Path) -> None:
    """The sizes of a draft model are its own: `--max-loras` is for the model alone."""
    for name in ("model", "draft"):
        shutil.copytree(MODEL_DIRECTORY, tmp_path / name)
    values = {
        "model": str(tmp_path / "model"),
        "draft_model": str(tmp_path / "draft"),
        "cache_dir": str(tmp_path / "cache"),
    }
    plain = asyncio.run(find_size(open_one(tmp_path / "model", tmp_path)))
    [model] = open_models(read_options(values, {}))
    size = asyncio.run(find_size(model))
    assert size.weight_bytes == 2 * plain.weight_bytes
    assert size.cache_bytes == 2 * plain.cache_bytes
    [adapted] = open_models(read_options(values | {"max_loras": 2}, {}))
    assert asyncio.run(find_size(adapted)).weight_bytes == size.weight_bytes
    (tmp_path / "draft" / "config.json").write_text('{"model_type": "nothing"}')
    with pytest.raises(ModelLoadError, match="nothing"):
        asyncio.run(find_size(model))


def test_a_head_as_openvino_ir_is_named_before_a_measurement(tmp_path: Path) -> None:
    head = copy_head_as_ir(tmp_path / "head")
    model = ModelConfig(model=str(MODEL_DIRECTORY), draft_model=str(head))
    with pytest.raises(ModelLoadError, match="is an EAGLE-3 head as OpenVINO IR, which cannot be"):
        measure(Question(model, EngineConfig()))


def test_the_fault_of_a_model_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(MODEL_DIRECTORY, directory)
    model = open_one(directory, tmp_path)
    (directory / "config.json").write_text('{"model_type": "nothing"}')
    with pytest.raises(ModelLoadError, match="nothing"):
        asyncio.run(find_size(model))


def test_a_model_gets_its_part_of_the_memory_and_its_caches_half_of_the_rest() -> None:
    limits = Limits(max_loaded=3, max_bytes=12 * GIB)
    size = ModelSize(weight_bytes=2 * GIB, cache_bytes=100 * GIB, max_model_len=1)
    plan = plan_memory(limits, size, EngineConfig())
    assert plan.share_bytes == 4 * GIB
    assert 3 * GIB < plan.num_bytes < 4 * GIB


def test_a_model_with_large_weights_gets_all_the_memory() -> None:
    limits = Limits(max_loaded=3, max_bytes=12 * GIB)
    size = ModelSize(weight_bytes=8 * GIB, cache_bytes=GIB, max_model_len=1)
    plan = plan_memory(limits, size, EngineConfig())
    assert plan.share_bytes == 12 * GIB
    assert 9 * GIB < plan.num_bytes < 12 * GIB


def test_caches_that_the_options_size_count_as_they_are() -> None:
    limits = Limits(max_loaded=3, max_bytes=12 * GIB)
    size = ModelSize(weight_bytes=GIB, cache_bytes=5 * GIB, max_model_len=1)
    plan = plan_memory(limits, size, EngineConfig(kv_cache_gib=5.0))
    assert plan.num_bytes > 6 * GIB


def test_a_model_that_is_alone_has_no_limits() -> None:
    options = read_options({"idle_unload_s": 60}, {})
    assert options.loads_on_request
    assert read_limits(options) == Limits()


def test_the_limits_follow_the_options(tmp_path: Path) -> None:
    values = {"models_dir": str(tmp_path), "models_memory_gib": 2.5}
    assert read_limits(read_options(values, {})) == Limits(3, int(2.5 * GIB))
    limits = read_limits(read_options({"models_dir": str(tmp_path), "max_loaded_models": 7}, {}))
    assert limits.max_loaded == 7
    assert limits.max_bytes is not None and limits.max_bytes > 0


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        (Limits(max_loaded=2), ["a", "b"]),
        (Limits(max_loaded=3, max_bytes=3 * GIB // 2), ["a", "b"]),
        (Limits(max_loaded=3, max_bytes=GIB), ["a"]),
        (Limits(max_loaded=3, max_bytes=2**20), []),
    ],
)
def test_the_start_loads_as_many_models_as_fit(
    limits: Limits, names: list[str], tmp_path: Path
) -> None:
    values = {
        "models": [f"{name}={MODEL_DIRECTORY}" for name in "abc"],
        "max_loaded_models": 2,
        "kv_cache_gib": 0.2,
        "cache_dir": str(tmp_path),
    }
    options = read_options(values, {})
    loaded = asyncio.run(plan_start(options, open_models(options), limits))
    assert [planned.checked.names[0] for planned in loaded] == names


def test_only_decoders_divide_the_memory_for_caches(tmp_path: Path) -> None:
    vectors, decoder = GOLDEN_SENTENCES / "minilm", GOLDEN_SENTENCES / "qwen3-embedding"
    both_ways = GOLDEN_SENTENCES / "embedding-gemma"
    values = {
        "models": [
            {"name": f"model-{number}", "model": str(directory)}
            for number, directory in enumerate([MODEL_DIRECTORY, vectors, decoder, both_ways])
        ],
        "cache_dir": str(tmp_path),
    }
    options = read_options(values, {})
    models = open_models(options)
    assert [has_kv_cache(model) for model in models] == [True, False, True, False]
    host = ModelHost(options)
    host.expect(models)
    assert host.divide_memory() == 0.5
    host.expect(models[:2])
    assert host.divide_memory() == 1.0
