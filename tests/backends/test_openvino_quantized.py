"""Reads matrices of quantised checkpoints.

The tests cover the values of each format, the groups of config.json, and the encoding at inference.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends import name_patterns
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.quantized.formats import read_format
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import MatrixSpec, MemoryWriter, Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.errors import ModelLoadError
from tests.backends import quantize
from tests.backends.forward import relative_error
from tests.backends.quantize import Tensors
from tests.backends.quantized_formats import (
    FORMATS,
    MATRIX,
    SHAPE,
    Settings,
    describe_compressed,
    describe_gptq,
    matrix_in,
    open_checkpoint,
    random_weight,
)
from tests.release_only import release_only


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("chunk_bytes", [1, 7 * 64 * 4, 2**20])
def test_a_matrix_has_the_values_of_its_format(
    name: str, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ouzel.backends.openvino.weights.safetensors.CHUNK_BYTES", chunk_bytes)
    _, settings, encoding = FORMATS[name]
    tensors, weight = matrix_in(name)
    quantize.save(tmp_path / SINGLE_FILE, tensors)
    checkpoint = open_checkpoint(tmp_path, settings)

    assert set(checkpoint.names()) == {MATRIX.name}
    assert checkpoint.stored_encoding(MATRIX) == encoding
    np.testing.assert_allclose(
        np.concatenate(list(checkpoint.rows(MATRIX))), weight, rtol=1e-6, atol=1e-7
    )
    if encoding is not None:
        decoded = [decode(encoding, parts) for parts in checkpoint.parts(MATRIX)]
        np.testing.assert_allclose(np.concatenate(decoded), weight, rtol=1e-6, atol=1e-7)


# Checkpoints that the authors' programs wrote (training/golden/make_quantized.py).
WRITTEN = Path(__file__).parent / "quantized"


# The programs of these formats multiply in lower precision: bfloat16, and half.
ROUNDING = {"nvfp4": 2**-8, "int8": 2**-10}


@pytest.mark.parametrize("name", sorted(path.name for path in WRITTEN.iterdir()))
def test_a_matrix_has_the_values_that_the_authors_program_reads(name: str) -> None:
    expected = np.load(WRITTEN / name / "expected.npy")
    settings = json.loads((WRITTEN / name / "config.json").read_text())["quantization_config"]
    tensor = Tensor("model.matrix.weight", expected.shape)
    if expected.ndim == 3:
        tensor = Tensor("model.experts", expected.shape, is_transposed=True)
        expected = expected.transpose(0, 2, 1)
    checkpoint = open_checkpoint(WRITTEN / name, settings)
    rows = np.concatenate(list(checkpoint.rows(tensor))).reshape(expected.shape)
    np.testing.assert_allclose(rows, expected, rtol=ROUNDING.get(name, 1e-6), atol=1e-7)


EXPERTS = "model.layers.0.mlp.experts.gate_up_proj"


def test_experts_in_mxfp4_keep_their_encoding_in_another_order_of_rows(tmp_path: Path) -> None:
    columns, rows = 64, 6
    weights = random_weight((2 * rows, columns))
    tensors, weight = quantize.fp4(32)(weights)
    stored = {
        EXPERTS + "_blocks": ("U8", tensors[".weight_packed"][1].reshape(2, rows, 2, 16)),
        EXPERTS + "_scales": ("U8", tensors[".weight_scale"][1].reshape(2, rows, 2)),
    }
    quantize.save(tmp_path / SINGLE_FILE, stored)
    checkpoint = open_checkpoint(tmp_path, {"quant_method": "mxfp4"})
    order = (0, 2, 4, 1, 3, 5)
    spec = MatrixSpec(
        (Tensor(EXPERTS, (2, columns, rows), is_transposed=True),), (2, rows, columns), order
    )

    matrix = CompressedWeights(checkpoint, MemoryWriter()).matrix(spec, "auto")

    assert set(checkpoint.names()) == {EXPERTS}
    assert matrix.encoding == Encoding("f4e2m1", "f8e8m0", group_size=32)
    expected = weight.reshape(2, rows, columns)[:, list(order)]
    np.testing.assert_array_equal(
        decode(matrix.encoding, matrix.parts).reshape(expected.shape), expected
    )


def describe_groups(**groups: Settings) -> Settings:
    return describe_compressed("mixed-precision") | {"config_groups": groups}


WEIGHTS_4 = {"num_bits": 4, "strategy": "group", "group_size": 32}
WEIGHTS_8 = {"num_bits": 8, "strategy": "group", "group_size": 32}


@pytest.mark.parametrize(
    "targets", [["model.matrix"], ["re:.*matrix"], ["re:nothing", "re:model[.]mat.*"]]
)
def test_a_matrix_belongs_to_the_group_with_the_most_exact_name(
    targets: list[str], tmp_path: Path
) -> None:
    settings = describe_groups(
        every={"targets": ["Linear"], "weights": WEIGHTS_8},
        some={"targets": targets, "weights": WEIGHTS_4},
    )
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("pack")[0])
    encoding = open_checkpoint(tmp_path, settings).stored_encoding(MATRIX)
    assert encoding == Encoding("i4", "f16", group_size=32)


def test_a_matrix_in_several_groups_is_refused(tmp_path: Path) -> None:
    settings = describe_groups(
        one={"targets": ["re:.*matrix"], "weights": WEIGHTS_8},
        other={"targets": ["re:model.*"], "weights": WEIGHTS_4},
    )
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("pack")[0])
    with pytest.raises(
        ModelLoadError, match=r"one of config\.json's config_groups must target it, found 2"
    ):
        open_checkpoint(tmp_path, settings).stored_encoding(MATRIX)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(.|.|.|.|.|.|.|.)*!", "targets: matching its patterns takes longer than 0.1 s"),
        ("(" * 3000 + ")" * 3000, "targets: .* is not a regular expression"),
    ],
)
def test_patterns_have_a_limit_of_time(
    pattern: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_patterns, "LIMITS", replace(name_patterns.LIMITS, cpu_s=0.1))
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("pack")[0])
    with pytest.raises(ModelLoadError, match=message):
        open_checkpoint(
            tmp_path, describe_groups(every={"targets": ["re:" + pattern], "weights": WEIGHTS_4})
        )


def test_the_summary_names_settings_that_have_no_effect(tmp_path: Path) -> None:
    settings = describe_compressed("int-quantized", num_bits=8, strategy="channel") | {
        "kv_cache_scheme": {"num_bits": 8}
    }
    settings["config_groups"]["group_0"]["input_activations"] = {"num_bits": 8}
    quantize.save(tmp_path / SINGLE_FILE, matrix_in("int")[0])
    assert read_format(HfConfig(settings), Checkpoint(tmp_path)).summary == (
        "compressed-tensors, int8 in rows; activations are not quantised; "
        "--kv-cache-dtype decides the type of cached keys and values"
    )


def test_biases_of_zeros_beside_gptq_are_ignored(tmp_path: Path) -> None:
    tensors, _ = matrix_in("gptq")
    biases: Tensors = {
        "model.matrix.bias": ("F16", np.zeros(40)),
        "model.plain.bias": ("F16", np.zeros(40)),
    }
    quantize.save(tmp_path / SINGLE_FILE, tensors | biases)
    assert set(open_checkpoint(tmp_path, describe_gptq()).names()) == {
        MATRIX.name,
        "model.plain.bias",
    }
    biases["model.matrix.bias"] = ("F16", np.ones(40))
    quantize.save(tmp_path / SINGLE_FILE, tensors | biases)
    assert "model.matrix.bias" in set(open_checkpoint(tmp_path, describe_gptq()).names())


# Encodings that the CPU plugin multiplies without widening the matrix.
QUICK = {
    encoding
    for _, _, encoding in FORMATS.values()
    if encoding is not None and not encoding.is_slow_integer
}


@pytest.mark.parametrize(
    "precision", ["f32", *release_only("packed matrices in the default precision", "default")]
)
@pytest.mark.parametrize("encoding", sorted(QUICK, key=str), ids=str)
def test_a_stored_encoding_stays_packed_during_inference(
    encoding: Encoding, precision: str, tmp_path: Path
) -> None:
    """One FullyConnected reads the constant; no operation converts or scales it in each step."""
    name = next(name for name, (_, _, stored) in FORMATS.items() if stored == encoding)
    quantize.save(tmp_path / SINGLE_FILE, matrix_in(name)[0])
    weights = CompressedWeights(open_checkpoint(tmp_path, FORMATS[name][1]), MemoryWriter())
    matrix = weights.matrix(MatrixSpec((MATRIX,), SHAPE), "auto")
    graph = PagedGraph()
    rows = ops.parameter([-1, SHAPE[1]], ov.Type.f32)
    model = ov.Model([ops.result(ops.matmul(rows, graph.matrix(matrix), False, True))], [rows])
    properties = {"INFERENCE_PRECISION_HINT": ov.Type.f32, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = ov.Core().compile_model(model, "CPU", properties if precision == "f32" else {})

    nodes = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    kinds = {node["layerType"].astype(str) for node in nodes}
    assert "FullyConnected" in kinds
    assert kinds <= {"FullyConnected", "Const", "Input", "Output", "Reorder"}
    assert encoding.values in {node["outputPrecisions"].astype(str) for node in nodes}
    inputs = np.random.default_rng(9).standard_normal((5, SHAPE[1])).astype(np.float32)
    expected = inputs @ decode(encoding, matrix.parts).T
    # Activations in bf16 and int8 have rounding errors of 3e-3, in f32 of 1e-7.
    assert relative_error(compiled([inputs])[0], expected) < (1e-6 if precision == "f32" else 0.01)
