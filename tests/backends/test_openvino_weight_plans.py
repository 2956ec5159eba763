"""Tests `--weights` with a width for each part of a model, in the cache and in the plugin."""

from pathlib import Path

import pytest

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.compilation import compile_graphs, fuse_graphs
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.loader import load_checkpoint
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN

UNTIED, TIED = GOLDEN / "llama", GOLDEN / "qwen3"
TYPES = {"u8": "int8", "i4": "int4", "u4": "int4", "bf16": "bf16", "f32": "f32"}


def read_executed_types(directory: Path, weights: str, cache_dir: Path) -> tuple[str, str, str]:
    """Returns the types that the plugin reads.

    They belong to the embedding, to the first matrix of the first layer, and to the head.
    """
    model = load_checkpoint(
        directory, read_hf_config(directory), read_weights(weights), str(cache_dir)
    )
    core, engine = ov.Core(), EngineConfig(precision="f32")
    [compiled] = compile_graphs(core, fuse_graphs(core, model, engine), model, engine)
    read: dict[str, list[str]] = {"Gather": [], "FullyConnected": []}
    for node in compiled.get_runtime_model().get_ordered_ops():
        kind = node.get_rt_info()["layerType"].astype(str)
        sources = [port.get_source_output().get_node() for port in node.inputs()]
        position = 0 if kind == "Gather" else 1
        if kind in read and sources[position].get_rt_info()["layerType"].astype(str) == "Const":
            element_type = node.inputs()[position].get_element_type().to_string()
            read[kind].append(TYPES.get(element_type, element_type))
    return read["Gather"][0], read["FullyConnected"][0], read["FullyConnected"][-1]


@pytest.mark.parametrize(
    ("directory", "weights", "embedding", "head"),
    [
        (UNTIED, "int4,embedding=int4", "int4", "int8"),
        (UNTIED, "int4,head=int4", "int8", "int4"),
        (TIED, "int4", "int8", "int8"),
        (TIED, "int4,head=int4", "int4", "int4"),
    ],
)
def test_each_part_stays_packed_in_its_width(
    directory: Path, weights: str, embedding: str, head: str, tmp_path: Path
) -> None:
    assert read_executed_types(directory, weights, tmp_path) == (embedding, "int4", head)


def test_tied_matrices_have_one_width(tmp_path: Path) -> None:
    with pytest.raises(
        ModelLoadError, match=r"ties embedding and head.*given embedding=int8 and head=int4"
    ):
        read_executed_types(TIED, "int4,embedding=int8,head=int4", tmp_path)


def test_each_plan_has_its_own_cache_entry_and_appears_in_info(tmp_path: Path) -> None:
    engine = EngineConfig(kv_cache_gib=0.01, max_num_seqs=4)
    for weights in ("int4", "int4,head=int4"):
        model = ModelConfig(model=str(UNTIED), weights=weights, cache_dir=str(tmp_path))
        assert create_runner(model, engine).info.weights == weights
    assert len({path.name.split("-")[1] for path in tmp_path.iterdir()}) == 2
