"""What can be wrong with a model directory or an option, and what the user is told; the cache of compressed weights."""

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.checks.selfcheck import SelfCheckFailed, warm_up
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.models.mistral import sliding_window
from ouzel.backends.openvino.weights.cache import CachedWeights, EntryWriter
from ouzel.backends.openvino.weights.entry_check import is_checked, seal_entry
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error

EXACT = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)
WEIGHTS = "model.safetensors"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of a checkpoint, to be broken."""
    return Path(shutil.copytree(GOLDEN / "llama", tmp_path / "llama"))


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "qwen3", tmp_path / "qwen3"))


def create(directory: Path, engine: EngineConfig = EXACT, **model: object) -> ModelRunner:
    settings = {"weights": "f32", "cache_dir": str(directory.parent / "cache"), **model}
    return create_runner(ModelConfig(model=str(directory), **settings), engine)  # type: ignore[arg-type]


def change_config(directory: Path, **values: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rename_tensors(path: Path, old: bytes, new: bytes) -> None:
    """Replaces what stands in the header of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = content[8:start].replace(old, new)
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[start:])


def flip_blocks(path: Path, number: int) -> None:
    """Inverts as many blocks of 64 bytes, spread over the file."""
    content = np.fromfile(path, np.uint8)
    starts = np.linspace(0, len(content) - 64, number).astype(int)
    content[starts[:, None] + np.arange(64)] ^= 255
    content.tofile(path)


def cut_short(path: Path, num_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:num_bytes])


def add_tensor(path: Path, name: str) -> None:
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    num_bytes = len(content) - start
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [num_bytes, num_bytes + 4]}
    header = json.dumps(json.loads(content[8:start]) | {name: entry}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[start:] + bytes(4))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing directory": (shutil.rmtree, "is not a directory"),
    "no config.json": (lambda d: (d / "config.json").unlink(), "has no config.json"),
    "config.json is no JSON": (
        lambda d: (d / "config.json").write_text('{"model_type": '),
        "config.json is not valid JSON",
    ),
    "config.json is a list": (
        lambda d: (d / "config.json").write_text("[]"),
        "must hold a JSON object",
    ),
    "unknown model_type": (
        lambda d: change_config(d, model_type="mamba9"),
        "mamba9 is not supported; .*supported: .*llama, .*mistral, .*qwen2, .*qwen3",
    ),
    "model_type of a near kind": (
        lambda d: change_config(d, model_type="qwen3_vl"),
        "qwen3_vl is not supported; nearest: qwen3",
    ),
    "model_type that cannot be": (
        lambda d: change_config(d, model_type="gemma2"),
        "gemma2 is not supported: its attention caps the scores",
    ),
    "no model_type": (lambda d: change_config(d, model_type=None), "model_type is missing"),
    "missing number": (lambda d: change_config(d, hidden_size=None), "hidden_size is missing"),
    "wrong type": (
        lambda d: change_config(d, hidden_size="64"),
        'hidden_size must be an integer, found "64"',
    ),
    "heads do not divide": (
        lambda d: change_config(d, num_key_value_heads=3),
        "no multiple of num_key_value_heads 3",
    ),
    "other activation": (
        lambda d: change_config(d, hidden_act="tanh"),
        "hidden_act tanh is not supported",
    ),
    "quantised": (
        lambda d: change_config(d, quantization_config={"quant_method": "hqq", "bits": 4}),
        'quantization_config: quant_method "hqq" is not supported; supported: awq, bitsandbytes',
    ),
    "no weights": (lambda d: (d / WEIGHTS).unlink(), "has neither"),
    "truncated weights": (lambda d: cut_short(d / WEIGHTS, 100_000), "is truncated"),
    "truncated header": (lambda d: cut_short(d / WEIGHTS, 200), "is truncated"),
    "empty weights": (lambda d: cut_short(d / WEIGHTS, 0), "is truncated"),
    "LFS pointer": (
        lambda d: (d / WEIGHTS).write_text("version https://git-lfs"),
        "Git LFS pointer",
    ),
    "no safetensors": (
        lambda d: (d / WEIGHTS).write_bytes(b"\x05" + b"\0" * 7 + b"hello"),
        "is not a safetensors",
    ),
    "missing tensor": (
        lambda d: change_config(d, num_hidden_layers=5),
        "model.layers.2.input_layernorm.weight is",
    ),
    "a tensor too many": (
        lambda d: add_tensor(d / WEIGHTS, "model.note.weight"),
        "tensor model.note.weight is in the checkpoint, but a llama with this config.json has no such tensor",
    ),
    "a layer too many": (
        lambda d: change_config(d, num_hidden_layers=1),
        "tensor model.layers.1.input_layernorm.weight is in the checkpoint, but a llama",
    ),
    "a head beside the embedding that is tied to be one": (
        lambda d: change_config(d, tie_word_embeddings=True),
        "config.json ties embedding and head, but the checkpoint has a tensor lm_head.weight that is not the same",
    ),
    "wrong shape": (
        lambda d: change_config(d, intermediate_size=256),
        r"gate_proj.weight has the shape \[128, 64\], but config.json requires \[256, 64\]",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_directory_is_told_by_name(fault: str, directory: Path) -> None:
    break_it, message = BROKEN[fault]
    break_it(directory)
    with pytest.raises(ModelLoadError, match=message):
        create(directory)
    assert not list((directory.parent / "cache").glob("*"))  # nothing half made stays behind


@pytest.mark.parametrize(
    "name",
    [
        "mtp.layers.0.norm.weight",
        "model.mtp_emb_norm.0.weight",
        "model.layers.0.self_attn.rotary_emb.inv_freq",
    ],
)
def test_what_the_model_does_without_may_lie_in_a_checkpoint(name: str, directory: Path) -> None:
    add_tensor(directory / WEIGHTS, name)
    assert logits_error(create(directory)) < 1e-5


def test_further_modes_may_lie_in_a_checkpoint(directory: Path) -> None:
    """Its language model is the one of `text_config`, under names of its own."""
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(
        json.dumps({"model_type": "llava", "text_config": config})
    )
    rename_tensors(directory / WEIGHTS, b'"model.', b'"model.language_model.')
    rename_tensors(directory / WEIGHTS, b'"lm_head.', b'"language_model.lm_head.')
    add_tensor(directory / WEIGHTS, "model.visual.merger.weight")
    assert logits_error(create(directory)) < 1e-5


def test_a_missing_shard_is_told_by_name(sharded: Path) -> None:
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(
        ModelLoadError, match=r"lacks files that .* names: model-00002-of-00002.safetensors"
    ):
        create(sharded)


def test_a_broken_index_is_told_by_name(sharded: Path) -> None:
    (sharded / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ModelLoadError, match=r"model.safetensors.index.json cannot be read"):
        create(sharded)


OPTIONS: dict[str, tuple[EngineConfig, str]] = {
    "f32 cache in bf16": (
        EngineConfig(kv_cache_dtype="f32", precision="bf16"),
        "dtype f32 requires precision f32",
    ),
    "bf16 cache in f32": (
        EngineConfig(kv_cache_dtype="bf16", precision="f32"),
        "dtype bf16 requires precision bf16",
    ),
    "bf16 cache in int8": (
        EngineConfig(kv_cache_dtype="bf16", precision="int8"),
        "bf16 requires .*, given int8",
    ),
    "unknown device": (EngineConfig(device="TPU"), "device TPU is not available; available: .*CPU"),
    "cache too small": (
        EngineConfig(kv_cache_gib=1e-6),
        "KV cache needs at least .* kv_cache_gib is 1e-06",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_cannot_be_met_are_refused(name: str, directory: Path) -> None:
    engine, message = OPTIONS[name]
    with pytest.raises(ModelLoadError, match=message):
        create(directory, engine)


@pytest.mark.skipif(
    "FP16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"), reason="this CPU has f16"
)
def test_a_precision_that_the_cpu_lacks_is_refused(directory: Path) -> None:
    with pytest.raises(ModelLoadError, match="precision f16 is not available on CPU"):
        create(directory, EngineConfig(precision="f16"))


def test_a_context_beyond_the_model_is_refused(directory: Path) -> None:
    with pytest.raises(
        ModelLoadError, match="max_model_len must be <= 40960, the model's own limit, given 50000"
    ):
        create(directory, max_model_len=50_000)


def test_info_says_what_was_decided(directory: Path) -> None:
    info = create(directory, EngineConfig(kv_cache_gib=0.01, max_num_seqs=4), weights="int8").info
    assert (info.model_type, info.weights, info.device, info.vocab_size) == (
        "llama",
        "int8",
        "CPU",
        320,
    )
    assert info.precision in {"bf16", "int8", "f32"}
    assert info.num_blocks * info.block_size >= info.max_model_len
    assert info.load_s > 0


def test_auto_makes_int8_of_plain_weights(directory: Path) -> None:
    assert create(directory, weights="auto").info.weights == "int8"


def test_the_context_shrinks_to_what_the_cache_holds(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    info = create(
        directory, EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.001)
    ).info
    assert info.max_model_len == info.num_blocks * info.block_size < 40960
    assert f"max_model_len is {info.max_model_len} instead of 40960" in caplog.text


def test_a_context_that_was_asked_for_and_does_not_fit_is_refused(directory: Path) -> None:
    engine = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.001)
    with pytest.raises(
        ModelLoadError,
        match=r"max_model_len must be <= \d+, the tokens of the KV cache, given 4000",
    ):
        create(directory, engine, max_model_len=4000)


def test_a_cache_beyond_all_memory_is_refused(directory: Path) -> None:
    message = r"kv_cache_gib: the system refuses 1000000\.0 GiB of memory, [\d.]+ GiB are free"
    with pytest.raises(ModelLoadError, match=message):
        create(directory, EngineConfig(kv_cache_gib=1e6))


def test_the_cache_is_no_larger_than_all_contexts(directory: Path) -> None:
    info = create(directory, EngineConfig(max_num_seqs=3), max_model_len=1000).info
    assert info.num_blocks == 3 * -(-1000 // info.block_size)


# The cache of compressed weights


def entries(directory: Path) -> list[Path]:
    return sorted((directory.parent / "cache").iterdir())


def open_weights(entry: Path) -> dict[str, object]:
    weights: dict[str, object] = json.loads((entry / "index.json").read_text().partition("\n")[2])[
        "weights"
    ]
    return weights


def logits_error(runner: ModelRunner) -> float:
    golden = read_golden("llama")
    _, logits = Driver(runner).prefill(golden.prompt, len(golden.prompt))
    return relative_error(logits, golden.logits)


def test_the_second_load_does_not_read_the_weights(directory: Path) -> None:
    create(directory)
    path = directory / WEIGHTS
    stat = path.stat()
    path.write_bytes(b"\0" * stat.st_size)  # same size and time: seen as unchanged
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert logits_error(create(directory)) < 1e-5


def test_a_changed_checkpoint_is_compressed_again_and_the_old_entry_goes(directory: Path) -> None:
    create(directory)
    before = entries(directory)
    shutil.copy(GOLDEN / "llama" / WEIGHTS, directory / WEIGHTS)  # a new time of change
    create(directory)
    assert len(entries(directory)) == len(before) == 1
    assert entries(directory) != before


@pytest.mark.parametrize("weights", ["int8", "int4", "bf16", "f32"])
def test_a_cached_model_computes_the_same(directory: Path, weights: str) -> None:
    golden = read_golden("llama")
    first, second = (
        Driver(create(directory, weights=weights)).prefill(golden.prompt, len(golden.prompt))[1]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.release("broken caches of compiled models, each kind")
@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: cut_short(entry / "weights.bin", 1000),
        lambda entry: (entry / "weights.bin").unlink(),
        lambda entry: (entry / "weights.bin").write_bytes(b""),
        lambda entry: (entry / "index.json").unlink(),
        lambda entry: cut_short(entry / "index.json", 300),
        lambda entry: (entry / "index.json").write_text("[]"),
        lambda entry: replace_text(entry / "index.json", "[320, 64]", "[640, 32]"),
        lambda entry: seal_entry(entry, entry.name, {}),
        lambda entry: seal_entry(entry, "another-model-f32-source-content", {}),
        lambda entry: flip_blocks(entry / "weights.bin", 50),
    ],
)
def test_a_broken_entry_is_made_again(
    directory: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    create(directory)
    [entry] = entries(directory)
    damage(entry)
    assert logits_error(create(directory)) < 1e-5
    assert "is broken" in caplog.text
    caplog.clear()
    assert logits_error(create(directory)) < 1e-5
    assert "is broken" not in caplog.text


def test_the_weights_are_checked_once_for_each_change_of_their_file(directory: Path) -> None:
    create(directory)
    [entry] = entries(directory)
    assert is_checked(entry)
    os.utime(entry / "weights.bin")
    assert not is_checked(entry)
    create(directory)
    assert is_checked(entry)


def test_a_cached_model_that_fails_its_self_check_is_made_again(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create(directory)
    [entry] = entries(directory)
    (entry / "weights.bin").write_bytes(b"\xff" * (entry / "weights.bin").stat().st_size)  # all NaN
    seal_entry(entry, entry.name, open_weights(entry))
    assert logits_error(create(directory)) < 1e-5
    assert f"cache entry {entry} is deleted and will be made again: self-check" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="ouzel"):  # whatever other tests set it to
        assert logits_error(create(directory)) < 1e-5
    assert caplog.text == ""


def make_another_file(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def other_instructions() -> str:
    """Returns a limit for oneDNN that is not the one of this run."""
    return "AVX2" if os.environ.get("ONEDNN_MAX_CPU_ISA") != "AVX2" else "AVX2_VNNI"


@pytest.mark.parametrize(
    ("change", "is_checked"),
    [
        (lambda entry, monkeypatch: None, False),
        (lambda entry, monkeypatch: make_another_file(entry / "weights.bin"), True),
        (lambda entry, monkeypatch: make_another_file(entry / "index.json"), True),
        (lambda entry, monkeypatch: (entry / "self_check.json").unlink(), True),
        (lambda entry, monkeypatch: (entry / "self_check.json").write_text("{"), True),
        (
            lambda entry, monkeypatch: monkeypatch.setenv(
                "ONEDNN_MAX_CPU_ISA", other_instructions()
            ),
            True,
        ),
    ],
)
def test_the_self_check_is_made_where_something_has_changed(
    directory: Path,
    change: Callable[[Path, pytest.MonkeyPatch], object],
    is_checked: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create(directory)
    [entry] = entries(directory)
    change(entry, monkeypatch)
    for made in (is_checked, False):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="ouzel.backends.openvino.checks.selfcheck"):
            assert logits_error(create(directory)) < 1e-5
        assert ("self-check: chunks change" in caplog.text) == made


@pytest.mark.parametrize(
    "settings", [{"kv_cache_dtype": "f16"}, {"num_threads": 1}, {"kv_cache_gib": 0.001}]
)
def test_other_settings_need_a_self_check_of_their_own(
    directory: Path, settings: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    create(directory)
    with caplog.at_level(logging.DEBUG, logger="ouzel.backends.openvino.checks.selfcheck"):
        create(directory, msgspec.structs.replace(EXACT, **settings))
    assert "self-check: chunks change" in caplog.text


def test_a_warm_up_that_gives_no_numbers_fails() -> None:
    class Runner(FakeRunner):
        def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
            return np.full_like(super().run(batch), np.nan)

    warm_up(FakeRunner())
    with pytest.raises(SelfCheckFailed, match="not finite"):
        warm_up(Runner())


def test_a_model_that_fails_its_self_check_when_just_made_is_refused(directory: Path) -> None:
    path = directory / WEIGHTS
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    path.write_bytes(
        path.read_bytes()[:header] + b"\x7f" * (path.stat().st_size - header)
    )  # all 3.4e38
    with pytest.raises(ModelLoadError, match="self-check"):
        create(directory)


def test_a_model_of_nothing_but_nan_is_refused_by_the_name_of_a_tensor(directory: Path) -> None:
    path = directory / WEIGHTS
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    path.write_bytes(path.read_bytes()[:header] + b"\xff" * (path.stat().st_size - header))
    with pytest.raises(ModelLoadError, match=r"tensor model\..* NaN or infinite"):
        create(directory)


def test_without_a_place_for_the_cache_the_model_is_served_all_the_same(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (directory.parent / "file").write_text("not a directory")
    with caplog.at_level(logging.WARNING):
        runner = create(directory, cache_dir=str(directory.parent / "file" / "cache"))
    assert logits_error(runner) < 1e-5
    assert "cannot be stored" in caplog.text


def test_the_cache_lies_where_the_system_wants_caches(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory.parent / "xdg"))
    create(directory, cache_dir="")
    assert len(list((directory.parent / "xdg" / "ouzel").iterdir())) == 1


def test_the_cpu_fuses_what_the_graph_was_written_for(directory: Path) -> None:
    """Unfused RoPE and RMS norms would be slower, and in-graph rotation less exact."""
    runner = create(directory, EngineConfig(kv_cache_gib=0.02), weights="int8")
    kinds = [
        node.get_rt_info()["layerType"].astype(str)
        for node in runner._compiled.get_runtime_model().get_ops()  # type: ignore[attr-defined]  # no public way
    ]
    assert kinds.count("RoPE") == 4  # two layers, queries and keys
    assert kinds.count("RMS") == 5
    assert kinds.count("FullyConnected") == 15
    assert kinds.count("PagedAttention") == 2


def test_of_two_processes_that_make_an_entry_both_go_on(tmp_path: Path) -> None:
    entry = tmp_path / "model-f32-source-content"
    with EntryWriter(entry) as one, EntryWriter(entry) as other:
        for writer in (one, other):
            part, place = writer.append([np.ones((2, 3), np.float32)])
            writer.commit({"name": {"shape": (2, 3), "parts": {"values": place}}})
            assert part.sum() == 6
    assert list(tmp_path.iterdir()) == [entry]
    assert CachedWeights(entry).array("name", (2, 3)).sum() == 6


def test_what_a_killed_process_left_behind_goes_after_a_day(tmp_path: Path) -> None:
    fresh, abandoned = tmp_path / ".unfinished-fresh", tmp_path / ".unfinished-old"
    for directory in (fresh, abandoned):
        directory.mkdir()
    os.utime(abandoned, (0, 0))
    with EntryWriter(tmp_path / "entry"):
        assert fresh.exists()
        assert not abandoned.exists()


def test_mistral_has_a_sliding_window_unless_it_says_null() -> None:
    assert sliding_window(HfConfig({})) == 4096
    assert sliding_window(HfConfig({"sliding_window": 16})) == 16
    assert sliding_window(HfConfig({"sliding_window": None})) == 0
