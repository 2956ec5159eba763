"""Tests the choice of mmproj files, and their settings of pictures."""

import json
import logging
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import Gguf, read_gguf
from ouzel.gguf.files import AUTO, NONE, list_projectors, order_projectors
from ouzel.gguf.model_directory import model_directory
from ouzel.gguf.projector_tensors import name_projector_tensors
from ouzel.gguf.seeing import make_seeing_files
from ouzel.model_store.verdict import judge_gguf
from ouzel.options.command_line import read_command_line
from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.loader import load_image_processor
from ouzel.serve.files_of_model import read_files_of_model
from tests.backends.seeing_families import FAMILIES
from tests.backends.vision_golden import GOLDEN as CHECKPOINTS
from tests.gguf.seeing import NAMES, find_files, write_directory
from tests.gguf.writer import RawTensor, Value, make_gguf

F32 = 0
# llama.cpp has limits of a picture's size, or other settings of the family's, in its code.
SIZES_IN_CODE = {"gemma4", "glm_ocr", "internvl", "lfm2_vl", "minicpmv-llama"}
SIZES_IN_CODE |= {"minicpmv4_6", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5"}


def link(directory: Path, *files: tuple[Path, str]) -> Path:
    directory.mkdir(exist_ok=True)
    for file, name in files:
        (directory / name).symlink_to(file)
    return directory


def read_config(directory: Path) -> dict[str, object]:
    config: dict[str, object] = json.loads((directory / "config.json").read_text())
    return config


def read_colours(processor: ImageProcessor) -> list[object]:
    """Returns the mean and deviation of each colour; files have them in float32."""
    normalisation = processor.normalisation
    numbers = (*normalisation.mean, *normalisation.std)
    return [normalisation.rescale, *(np.float32(number) for number in numbers)]


def read_others(processor: ImageProcessor) -> dict[str, object]:
    names = [field.name for field in fields(type(processor))]  # type: ignore[arg-type]
    return {name: getattr(processor, name) for name in names if name != "normalisation"}


@pytest.mark.parametrize("name", sorted(set(NAMES) - SIZES_IN_CODE))
def test_the_image_processor_is_the_one_of_the_checkpoint(name: str, tmp_path: Path) -> None:
    (tmp_path / "family").mkdir()
    expected = load_image_processor(FAMILIES[name].write(tmp_path / "family"))
    made = load_image_processor(write_directory(name, tmp_path / "cache"))

    assert made is not None
    assert expected is not None
    assert read_colours(made) == read_colours(expected)
    assert read_others(made) == read_others(expected)


@pytest.mark.parametrize("name", sorted(SIZES_IN_CODE))
def test_other_image_processors_have_colours_and_tokens_of_the_checkpoint(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "family").mkdir()
    expected = load_image_processor(FAMILIES[name].write(tmp_path / "family"))
    made = load_image_processor(write_directory(name, tmp_path / "cache"))

    assert made is not None
    assert expected is not None
    assert read_colours(made) == read_colours(expected)
    assert (made.placeholder, made.feature_token) == (expected.placeholder, expected.feature_token)


def test_a_model_without_an_mmproj_file_reads_texts_only(tmp_path: Path) -> None:
    model, _ = find_files("qwen2_5_vl")
    directory = model_directory(link(tmp_path / "m", (model, "m.gguf")), tmp_path / "cache")

    assert read_config(directory)["model_type"] == "qwen2_vl_text"
    assert list_projectors(directory) == []


def test_the_file_beside_the_model_is_taken_unless_an_option_says_otherwise(tmp_path: Path) -> None:
    model, projector = find_files("smolvlm")
    both = link(tmp_path / "m", (model, "m-Q8_0.gguf"), (projector, "mmproj-model-f16.gguf"))
    other = link(tmp_path / "o", (projector, "encoder.gguf")) / "encoder.gguf"
    alone = link(tmp_path / "a", (model, "m.gguf"))
    cache = tmp_path / "cache"

    found = {
        mmproj: read_config(model_directory(path, cache, mmproj))["model_type"]
        for path, mmproj in ((both, AUTO), (both, NONE), (alone, str(other)))
    }

    assert found == {AUTO: "idefics3", NONE: "llama", str(other): "idefics3"}
    assert judge_gguf(both / "m-Q8_0.gguf").model_type == "idefics3"
    assert read_files_of_model(both / "m-Q8_0.gguf", "auto").has_vision
    assert not read_files_of_model(alone / "m.gguf", "auto").has_vision


def test_the_preferred_encoding_comes_first() -> None:
    names = ["mmproj-F32", "m.mmproj-Q8_0", "mmproj-Q4_K_M", "mmproj-model-f16", "mmproj-BF16"]

    ordered = [path.stem for path in order_projectors(Path(f"{name}.gguf") for name in names)]

    assert ordered == [
        "mmproj-model-f16",
        "mmproj-BF16",
        "m.mmproj-Q8_0",
        "mmproj-F32",
        "mmproj-Q4_K_M",
    ]


def test_among_several_models_the_file_must_have_the_name_of_its_model(tmp_path: Path) -> None:
    model, projector = find_files("smolvlm")
    directory = link(
        tmp_path / "m",
        (model, "smol-vlm-Q8_0.gguf"),
        (model, "llama-Q8_0.gguf"),
        (projector, "mmproj-SmolVLM-F16.gguf"),
    )

    types = [
        read_config(model_directory(directory / name, tmp_path / "cache"))["model_type"]
        for name in ("smol-vlm-Q8_0.gguf", "llama-Q8_0.gguf")
    ]

    assert types == ["idefics3", "llama"]


def test_a_file_of_another_model_is_left_out_and_refused_if_it_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (model, _), (_, projector) = find_files("smolvlm"), find_files("gemma3")
    directory = link(tmp_path / "m", (model, "m.gguf"), (projector, "mmproj-F16.gguf"))
    reason = "it belongs to language models of the type gemma3_text, not llama"

    with caplog.at_level(logging.WARNING):
        made = model_directory(directory, tmp_path / "cache")

    assert read_config(made)["model_type"] == "llama"
    assert f"pictures will be refused: mmproj-F16.gguf is not used: {reason}" in caplog.text
    with pytest.raises(ModelLoadError, match=rf"--mmproj: .*mmproj.*cannot be used: {reason}"):
        model_directory(directory, tmp_path / "cache", str(projector))
    with pytest.raises(ModelLoadError, match="--mmproj: there is no file /nowhere"):
        model_directory(directory, tmp_path / "cache", "/nowhere")


def test_options_choose_the_file() -> None:
    assert read_command_line(["m.gguf"], {}).model.mmproj == AUTO
    assert read_command_line(["m.gguf", "--no-mmproj"], {}).model.mmproj == NONE
    assert read_command_line(["m.gguf", "--mmproj", "x.gguf"], {}).model.mmproj == "x.gguf"


def broken(tmp_path: Path, metadata: dict[str, Value], *tensors: str) -> Gguf:
    path = tmp_path / "mmproj.gguf"
    zeros = np.zeros((4, 4), "<f4").tobytes()
    sizes: dict[str, Value] = {"clip.vision.embedding_length": 4}
    names = ["v.blk.0.ffn_up.weight", "v.blk.0.ffn_down.weight", *tensors]
    made = [RawTensor(name, (4, 4), F32, zeros) for name in names]
    path.write_bytes(make_gguf({"general.architecture": "clip"} | sizes | metadata, made))
    return read_gguf([path])


def test_unknown_types_and_tensors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"clip\.projector_type qwen2vl_mergr"):
        name_projector_tensors(broken(tmp_path, {"clip.projector_type": "qwen2vl_mergr"}))
    known: dict[str, Value] = {"clip.projector_type": "idefics3"}
    for name in ("v.blk.0.attn_sinks", "mm.extra.weight", "v.blk.0.attn_q.scale2"):
        with pytest.raises(ModelLoadError, match=f"tensor {name} is not supported"):
            name_projector_tensors(broken(tmp_path, known, name))


def fuse_queries_keys_and_values(gguf: Gguf, more_rows: int = 0) -> Gguf:
    """Describes the attention of the first layer with one matrix and one vector."""
    tensors = dict(gguf.tensors)
    for kind in ("weight", "bias"):
        query, *_ = (tensors.pop(f"v.blk.0.attn_{part}.{kind}") for part in "qkv")
        shape = (3 * query.shape[0] + more_rows, *query.shape[1:])
        tensors[f"v.blk.0.attn_qkv.{kind}"] = replace(query, shape=shape)
    return Gguf(gguf.metadata, tensors)


def test_a_fused_matrix_is_cut_into_queries_keys_and_values() -> None:
    _, projector = find_files("smolvlm")
    gguf = read_gguf([projector])
    expected, fused = name_projector_tensors(gguf), fuse_queries_keys_and_values(gguf)

    found = name_projector_tensors(fused)

    assert {name: each.shape for name, each in found.items()} == {
        name: each.shape for name, each in expected.items()
    }
    for kind in ("weight", "bias"):
        whole = fused.tensors[f"v.blk.0.attn_qkv.{kind}"]
        size = gguf.tensors[f"v.blk.0.attn_q.{kind}"].row_bytes
        size *= whole.shape[0] // 3 if kind == "weight" else 1
        for number, part in enumerate("qkv"):
            [name] = [each for each in found if f"layers.0.self_attn.{part}_proj.{kind}" in each]
            assert found[name].location.offset == whole.offset + number * size
    with pytest.raises(ModelLoadError, match=r"attn_qkv\.weight must have a multiple of 3 rows"):
        name_projector_tensors(fuse_queries_keys_and_values(gguf, more_rows=1))


def test_a_setting_that_is_not_computed_is_refused(tmp_path: Path) -> None:
    model, projector = find_files("smolvlm")
    gguf = read_gguf([projector])
    values = dict(gguf.metadata._values) | {"clip.vision.window_size": 8}
    text = make_model_config(read_gguf([model]))
    with pytest.raises(ModelLoadError, match=r"clip\.vision\.window_size is not supported"):
        make_seeing_files(text, Gguf(type(gguf.metadata)(values, "file"), gguf.tensors))


@pytest.mark.parametrize(
    ("name", "key", "value", "reason"),
    [
        ("minicpmv-llama", "minicpmv_version", 2, "must be one of 3, 4, 5, 6, 100045, found 2"),
        ("minicpmv4_6", "vision.projector.scale_factor", 3, "must be 2 or 4, found 3"),
    ],
)
def test_an_unknown_kind_of_minicpmv_is_refused(
    name: str, key: str, value: int, reason: str
) -> None:
    model, projector = find_files(name)
    gguf = read_gguf([projector])
    values = dict(gguf.metadata._values) | {f"clip.{key}": value}
    text = make_model_config(read_gguf([model]))
    with pytest.raises(ModelLoadError, match=f"{key.replace('.', '[.]')} {reason}"):
        make_seeing_files(text, Gguf(type(gguf.metadata)(values, "file"), gguf.tensors))


def test_minicpmv_has_the_settings_of_its_file(tmp_path: Path) -> None:
    config = read_config(write_directory("minicpmv4_6", tmp_path))
    expected = json.loads((CHECKPOINTS / "minicpmv4_6" / "config.json").read_text())
    assert config["insert_layer_id"] == expected["insert_layer_id"] == 1
    assert config["downsample_mode"] == expected["downsample_mode"]
    vision = config["vision_config"]
    assert isinstance(vision, dict)
    assert vision["image_size"] == expected["vision_config"]["image_size"]
