"""The first start with a model measures the effect of u8 on it, and so selects the KV cache's type.

The memory in these tests holds less than four requests of full length in f16.
test_openvino_f16_cache.py tests larger memories.
"""

import logging
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner, load, make_runner, read_config
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig
from ouzel.demo import VISION_MODEL_DIRECTORY
from ouzel.engine.base import ModelRunner
from ouzel.model_store.inventory import Inventory
from ouzel.model_store.kept import kept_in
from ouzel.model_store.removal import Removal, carry_out
from ouzel.types.engine_info import EngineInfo
from tests.backends import GOLDEN
from tests.backends.forward import Driver, relative_error
from tests.backends.large_keys import make_checkpoint, write_tokenizer

PROMPT = list(range(3, 120))


def model_config(directory: Path) -> ModelConfig:
    return ModelConfig(
        model=str(directory), weights="f32", cache_dir=str(directory.parent / "cache")
    )


def engine_config(kv_cache_dtype: KvCacheDtype = "auto") -> EngineConfig:
    return EngineConfig(precision="f32", kv_cache_dtype=kv_cache_dtype, kv_cache_gib=0.003)


def create(directory: Path, kv_cache_dtype: KvCacheDtype = "auto") -> ModelRunner:
    return create_runner(model_config(directory), engine_config(kv_cache_dtype))


def load_cache_type(directory: Path, kv_cache_dtype: KvCacheDtype = "auto") -> str:
    return create(directory, kv_cache_dtype).info.kv_cache_dtype


def compute_logits(directory: Path, kv_cache_dtype: KvCacheDtype = "auto") -> NDArray[np.float32]:
    driver = Driver(create(directory, kv_cache_dtype))
    sequence = driver.sequence()
    driver.step([(sequence, PROMPT[:-1])])
    return driver.step([(sequence, PROMPT[-1:])]).copy()


def find_entry(directory: Path) -> Path:
    [entry] = (directory.parent / "cache").iterdir()
    return entry


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    """Writes a model that computes nearly the same with u8."""
    return make_checkpoint(tmp_path / "model", factor=1.0, attention=2.0)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Writes the model of `steady` with one pair of key channels much larger than the others."""
    return make_checkpoint(tmp_path / "model", factor=256.0, attention=2.0)


@pytest.fixture
def sharp(tmp_path: Path) -> Path:
    return make_sharp_checkpoint(tmp_path)


def make_sharp_checkpoint(directory: Path) -> Path:
    """Writes a checkpoint whose attention needs a more exact cache than u8."""
    return make_checkpoint(directory / "model", factor=256.0, attention=16.0)


@pytest.fixture(scope="module")
def sharp_infos(tmp_path_factory: pytest.TempPathFactory) -> dict[KvCacheDtype, EngineInfo]:
    """Loads a sharp checkpoint with u8, then with `auto`, and returns the engines' descriptions."""
    directory = make_sharp_checkpoint(tmp_path_factory.mktemp("sharp"))
    dtypes: tuple[KvCacheDtype, ...] = ("u8", "auto")
    return {dtype: create(directory, dtype).info for dtype in dtypes}


def test_a_model_that_u8_does_not_harm_keeps_u8(steady: Path) -> None:
    assert load_cache_type(steady) == "u8"


def test_a_model_that_scales_do_not_help_gets_f16(
    sharp_infos: dict[KvCacheDtype, EngineInfo],
) -> None:
    assert sharp_infos["auto"].kv_cache_dtype == "f16"


@pytest.mark.parametrize("kv_cache_dtype", ["f16", "f32"])
def test_a_named_type_is_taken_without_a_trial(
    large: Path, kv_cache_dtype: KvCacheDtype, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        assert load_cache_type(large, kv_cache_dtype) == kv_cache_dtype
    assert "for this model" not in caplog.text


def test_named_u8_stays_u8_in_the_better_of_two_forms(
    sharp_infos: dict[KvCacheDtype, EngineInfo],
) -> None:
    assert sharp_infos["u8"].kv_cache_dtype == "u8 with scaled keys"


def test_scaled_keys_leave_the_logits_where_they_are(large: Path) -> None:
    exact, scaled = compute_logits(large, "f32"), compute_logits(large)
    assert np.abs(scaled - exact).max() < 0.15 * exact.std()


def test_without_scales_the_same_logits_are_far_off(large: Path) -> None:
    """Shows that the test above can fail: without a tokenizer there is no trial and no scale."""
    exact = compute_logits(large, "f32")
    (large / "tokenizer.json").unlink()
    (find_entry(large) / "kv_cache.json").unlink(missing_ok=True)
    assert load_cache_type(large) == "u8"
    assert np.abs(compute_logits(large) - exact).max() > 0.5 * exact.std()


@pytest.mark.parametrize(
    ("weights", "max_loras"),
    [
        ("int8", 0),
        *(
            pytest.param(*each, marks=pytest.mark.release("scaled keys beside further weights"))
            for each in (("int8", 1), ("int4", 0), ("int4", 1), ("bf16", 0), ("bf16", 1))
        ),
    ],
)
def test_scaled_keys_leave_the_logits_of_compressed_weights_where_they_are(
    weights: str, max_loras: int, large: Path
) -> None:
    model = msgspec.structs.replace(model_config(large), weights=weights, max_loras=max_loras)
    runners = [create_runner(model, engine_config(dtype)) for dtype in ("f32", "u8")]
    assert runners[1].info.kv_cache_dtype == "u8 with scaled keys"
    exact, scaled = (Driver(runner).prefill(PROMPT, 32)[1] for runner in runners)
    assert relative_error(scaled, exact) < 0.05


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_scales_of_compressed_weights_take_no_operation_of_their_own(
    weights: str, large: Path
) -> None:
    model = msgspec.structs.replace(model_config(large), weights=weights)
    core, config = ov.Core(), read_config(large)
    plain, scaled = (load(core, large, config, model) for _ in range(2))
    scales = {
        f"key_cache.{layer}": np.geomspace(1 / 8, 8, 2 * 16, dtype=np.float32).reshape(2, 16)
        for layer in (0, 1)
    }
    scaled = scaled.with_key_scales(scales)
    assert num_floating_operations(scaled) == num_floating_operations(plain)
    logits = []
    for language_model in (plain, scaled):
        runner = make_runner(
            core, language_model, config, model, engine_config("f32"), num_blocks=8
        )
        logits.append(Driver(runner).prefill(PROMPT, 32)[1])
    assert relative_error(logits[1], logits[0]) < 1e-5


def num_floating_operations(model: LanguageModel) -> Counter[str]:
    names = Counter(node.get_type_name() for node in model.graph.get_ops())
    return Counter({name: names[name] for name in ("Multiply", "Add", "MatMul", "Reshape")})


def test_large_channels_of_keys_get_scales_and_a_second_start_runs_no_text(
    large: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = create(large).info
    verdict = (find_entry(large) / "kv_cache.json").stat().st_mtime_ns
    (large / "tokenizer.json").write_text("{")  # reading this file fails
    with caplog.at_level(logging.INFO, logger="ouzel"):
        second = create(large).info
    assert second.kv_cache_dtype == first.kv_cache_dtype == "u8 with scaled keys"
    assert second.cache_identity == first.cache_identity
    assert (find_entry(large) / "kv_cache.json").stat().st_mtime_ns == verdict
    assert "KV cache: u8 with scaled keys for this model" in caplog.text


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_another_verdict_is_another_cache_to_other_servers(large: Path) -> None:
    scaled = create(large).info.cache_identity
    (find_entry(large) / "kv_cache.json").unlink()
    (large / "tokenizer.json").unlink()
    assert create(large).info.cache_identity != scaled


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_an_unreadable_verdict_is_replaced(large: Path) -> None:
    create(large)
    path = find_entry(large) / "kv_cache.json"
    for content in ("", "{", '{"facts": "others", "verdict": {"plain": 0.0}}'):
        path.write_text(content)
        assert load_cache_type(large) == "u8 with scaled keys"
        assert path.read_text() != content


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_without_a_cache_directory_each_start_makes_the_verdict(
    large: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (large.parent / "cache").write_text("no directory")
    for _ in range(2):
        assert load_cache_type(large) == "u8 with scaled keys"


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
@pytest.mark.parametrize("directory", ["steady", "large", "sharp"])
def test_inspect_reports_the_type_of_the_cache(
    directory: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(directory)
    before = inspect_model(model_config(path), engine_config())
    served = create(path).info
    after = inspect_model(model_config(path), engine_config())
    assert (before.kv_cache_dtype, before.kv_cache_is_open) == ("u8", True)
    assert (after.kv_cache_dtype, after.kv_cache_is_open) == (served.kv_cache_dtype, False)
    assert after.num_kv_tokens == served.num_blocks * served.block_size


def test_f16_takes_more_memory_and_holds_fewer_tokens(
    sharp_infos: dict[KvCacheDtype, EngineInfo],
) -> None:
    assert sharp_infos["auto"].num_blocks < 0.8 * sharp_infos["u8"].num_blocks


def test_a_context_shorter_than_the_text_is_enough(large: Path) -> None:
    config = model_config(large)
    info = create_runner(
        msgspec.structs.replace(config, max_model_len=100), engine_config("u8")
    ).info
    assert info.kv_cache_dtype == "u8 with scaled keys"


def test_a_context_of_a_few_tokens_keeps_u8(large: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = model_config(large)
    with caplog.at_level(logging.INFO, logger="ouzel"):
        info = create_runner(
            msgspec.structs.replace(config, max_model_len=40), engine_config("u8")
        ).info
    assert info.kv_cache_dtype == "u8"
    assert "40 tokens of text are too few" in caplog.text


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
@pytest.mark.parametrize(
    "name",
    ["deepseek-v3", "gemma4-shared", "gpt-oss", "granitemoehybrid", "lfm2", "qwen3_5", "qwen3_vl"],
)
def test_layers_of_every_kind_can_be_tried(name: str, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(GOLDEN / name, tmp_path / "model"))
    write_tokenizer(directory)
    load_cache_type(directory, "u8")
    assert (find_entry(directory) / "kv_cache.json").is_file()


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_a_model_with_a_prediction_layer_can_be_tried(tmp_path: Path) -> None:
    directory = Path(
        shutil.copytree(GOLDEN.parent / "golden_prediction" / "qwen3_5", tmp_path / "model")
    )
    write_tokenizer(directory)
    config = msgspec.structs.replace(model_config(directory), mtp=True)
    create_runner(config, engine_config("u8"))
    assert (find_entry(directory) / "kv_cache.json").is_file()


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_a_vision_model_can_be_tried(tmp_path: Path) -> None:
    config = ModelConfig(model=str(VISION_MODEL_DIRECTORY), cache_dir=str(tmp_path / "cache"))
    assert create_runner(config, engine_config("u8")).info.kv_cache_dtype == "u8"
    assert (find_entry(tmp_path / "model") / "kv_cache.json").is_file()


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_a_model_that_takes_adapters_can_be_tried(large: Path) -> None:
    config = msgspec.structs.replace(model_config(large), max_loras=1)
    assert create_runner(config, engine_config()).info.kv_cache_dtype == "u8 with scaled keys"


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """Writes a directory with OpenVINO graphs and a tokenizer."""
    directory = Path(
        shutil.copytree(GOLDEN.parent / "optimum_ir" / "mistral-int8", tmp_path / "graphs")
    )
    write_tokenizer(directory)
    return directory


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_a_directory_of_graphs_is_tried_once(
    graphs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = ModelConfig(model=str(graphs), cache_dir=str(graphs.parent / "cache"))
    first = create_runner(config, engine_config("u8")).info.kv_cache_dtype
    (graphs / "tokenizer.json").write_text("{")  # reading this file fails
    with caplog.at_level(logging.INFO, logger="ouzel"):
        assert create_runner(config, engine_config("u8")).info.kv_cache_dtype == first
    assert f"KV cache: {first} for this model" in caplog.text


@pytest.mark.release("trials of the KV cache's type: every kind of layer, stored verdicts")
def test_the_verdict_on_a_directory_of_graphs_is_listed_as_stored(graphs: Path) -> None:
    root = graphs.parent / "cache"
    create_runner(ModelConfig(model=str(graphs), cache_dir=str(root)), engine_config("u8"))
    [kept] = kept_in(root)
    assert (kept.kind, kept.name, kept.source, kept.stale) == ("verdict", "graphs", str(graphs), "")
    assert Inventory((), (kept,), {}).list_entries([graphs]) == [kept]
    (graphs / "openvino_model.bin").touch()
    assert [each.stale for each in kept_in(root)] == ["its model has changed"]
    shutil.rmtree(graphs)
    [gone] = kept_in(root)
    assert gone.stale == "its model is gone"
    assert carry_out(Removal((), (gone,))) == []
    assert not [*root.iterdir()]
