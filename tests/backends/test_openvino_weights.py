"""Reads matrices of a checkpoint for a graph.

A matrix may consist of several tensors, or have another order of rows. Tensors may be stored in a
compressed encoding.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.encodings import (
    INT8_IN_GROUPS,
    MXFP4,
    Encoding,
    Parts,
    pack_nibbles,
)
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import MatrixSpec, MemoryWriter, StoredForm, Tensor
from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.config.weights import WidthOption
from ouzel.errors import ModelLoadError
from tests.backends import quantize

EXPERTS = np.arange(3 * 4 * 6, dtype=np.float32).reshape(3, 4, 6)


def save(path: Path, tensors: dict[str, NDArray[np.float32]]) -> None:
    ends = np.cumsum([tensor.nbytes for tensor in tensors.values()]).tolist()
    header = {
        name: {"dtype": "F32", "shape": tensor.shape, "data_offsets": (end - tensor.nbytes, end)}
        for (name, tensor), end in zip(tensors.items(), ends, strict=True)
    }
    encoded = json.dumps(header).encode()
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)


@pytest.fixture
def weights(tmp_path: Path) -> CompressedWeights:
    turned = EXPERTS.transpose(0, 2, 1)
    save(
        tmp_path / SINGLE_FILE,
        {"experts": EXPERTS, "turned": turned, "first": EXPERTS[0], "second": EXPERTS[1]},
    )
    return CompressedWeights(Checkpoint(tmp_path), MemoryWriter())


def read_values(weights: CompressedWeights, spec: MatrixSpec) -> NDArray[np.generic]:
    return weights.matrix(spec, "f32").parts["values"].reshape(spec.shape)


def test_several_tensors_are_joined_along_rows(weights: CompressedWeights) -> None:
    spec = MatrixSpec((Tensor("first", (4, 6)), Tensor("second", (4, 6))), (2, 4, 6))
    np.testing.assert_array_equal(read_values(weights, spec), EXPERTS[:2])


def test_experts_may_be_stored_transposed(weights: CompressedWeights) -> None:
    spec = MatrixSpec((Tensor("turned", (3, 6, 4), is_transposed=True),), (3, 4, 6))
    np.testing.assert_array_equal(read_values(weights, spec), EXPERTS)


@pytest.mark.parametrize("chunk_bytes", [1, 3 * 24, 5 * 24, 2**20])
def test_rows_of_each_expert_are_reordered_with_any_size_of_chunks(
    weights: CompressedWeights, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ouzel.backends.openvino.weights.safetensors.CHUNK_BYTES", chunk_bytes)
    order = (0, 2, 1, 3)
    spec = MatrixSpec((Tensor("experts", (3, 4, 6)),), (3, 4, 6), order)
    np.testing.assert_array_equal(read_values(weights, spec), EXPERTS[:, list(order)])


@pytest.mark.parametrize("chunk_bytes", [1, 3 * 24, 5 * 24, 2**20])
def test_some_rows_of_each_head_may_be_a_matrix(
    weights: CompressedWeights, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache has another entry for the other rows of the tensor."""
    monkeypatch.setattr("ouzel.backends.openvino.weights.safetensors.CHUNK_BYTES", chunk_bytes)
    tensors = (Tensor("experts", (3, 4, 6)),)
    upper = MatrixSpec(tensors, (3, 1, 6), (0,), row_unit=4)
    lower = MatrixSpec(tensors, (3, 3, 6), (1, 2, 3), row_unit=4)
    np.testing.assert_array_equal(read_values(weights, upper), EXPERTS[:, :1])
    np.testing.assert_array_equal(read_values(weights, lower), EXPERTS[:, 1:])
    assert len(weights.index) == 2


class StoredInFourBits:
    """A checkpoint whose tensors named `packed` have four bits, with scales for 32 columns."""

    encoding = Encoding("i4", "f16", group_size=32)
    levels = np.arange(384, dtype=np.uint8).reshape(4, 96) % 16

    def names(self) -> tuple[str, ...]:
        return ("packed", "plain")

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        return self.encoding if "packed" in tensor.name else None

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        return StoredForm("packed", 4) if "packed" in tensor.name else None

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        yield np.ones(tensor.shape, np.float32)

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        scales = np.arange(12, dtype=np.float16).reshape(4, 3)
        for rows in (slice(0, 3), slice(3, 4)):
            yield {"values": pack_nibbles(self.levels[rows]), "scales": scales[rows]}


def test_a_stored_encoding_is_not_compressed_again() -> None:
    weights = CompressedWeights(StoredInFourBits(), MemoryWriter())
    matrix = weights.matrix(MatrixSpec((Tensor("packed", (4, 96)),), (4, 96), (3, 2, 1, 0)), "auto")
    assert matrix.encoding == StoredInFourBits.encoding
    np.testing.assert_array_equal(
        matrix.parts["values"], pack_nibbles(StoredInFourBits.levels[::-1])
    )
    np.testing.assert_array_equal(matrix.parts["scales"][:, 0], [9, 6, 3, 0])


def test_tensors_of_different_encodings_are_compressed_together() -> None:
    weights = CompressedWeights(StoredInFourBits(), MemoryWriter())
    spec = MatrixSpec((Tensor("packed", (4, 96)), Tensor("plain", (4, 96))), (8, 96))
    matrix = weights.matrix(spec, "auto")
    assert (matrix.encoding, matrix.parts["values"].shape) == (Encoding("u8", "f32", "u8"), (8, 96))


def test_an_explicit_width_compresses_a_stored_encoding_again() -> None:
    weights = CompressedWeights(StoredInFourBits(), MemoryWriter())
    matrix = weights.matrix(MatrixSpec((Tensor("packed", (4, 96)),), (4, 96)), "bf16")
    assert (matrix.encoding, matrix.parts["values"].shape) == (Encoding("bf16"), (4, 96))


@pytest.mark.parametrize(
    ("columns", "width", "expected"),
    [
        (128, "auto", INT8_IN_GROUPS),
        (96, "auto", Encoding("u8", "f32", "u8")),
        (128, "bf16", Encoding("bf16")),
    ],
)
def test_integers_without_a_kernel_are_compressed_again(
    columns: int, width: WidthOption, expected: Encoding
) -> None:
    stored = StoredInFourBits()
    stored.encoding = Encoding("u4", "f32", "f32", 32)
    weights = CompressedWeights(stored, MemoryWriter())
    matrix = weights.matrix(MatrixSpec((Tensor("packed", (4, columns)),), (4, columns)), width)
    assert (matrix.encoding, weights.num_kept) == (expected, 0)
    np.testing.assert_allclose(decode(matrix.encoding, matrix.parts), 1, atol=0.01)


@pytest.mark.parametrize(
    ("columns", "width", "expected"),
    [
        (128, "int8", INT8_IN_GROUPS),
        (128, "auto", INT8_IN_GROUPS),
        (96, "int8", Encoding("u8", "f32", "u8")),
        (128, "bf16", Encoding("bf16")),
    ],
)
def test_a_matrix_with_groups_has_a_scale_for_each_of_them(
    columns: int, width: WidthOption, expected: Encoding
) -> None:
    spec = MatrixSpec((Tensor("plain", (4, columns)),), (4, columns), has_groups=True)
    matrix = CompressedWeights(StoredInFourBits(), MemoryWriter()).matrix(spec, width)
    assert matrix.encoding == expected
    np.testing.assert_allclose(decode(matrix.encoding, matrix.parts), 1, atol=0.01)


class StoredInMxfp4(StoredInFourBits):
    encoding = MXFP4
    levels = np.arange(128, dtype=np.uint8).reshape(2, 64) % 16

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        yield {
            "values": pack_nibbles(self.levels),
            "scales": np.array([[120, 127], [128, 131]], np.uint8),
        }


def test_mxfp4_becomes_integers_of_the_same_values() -> None:
    spec = MatrixSpec((Tensor("packed", (2, 64)),), (2, 1, 64), is_integer=True)
    matrix = CompressedWeights(StoredInMxfp4(), MemoryWriter()).matrix(spec, "auto")
    assert matrix.encoding == Encoding("i8", "f32", group_size=32)
    levels = np.array(
        [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32
    )
    scales = np.repeat(np.array([[2**-7, 1], [2, 16]], np.float32), 32, axis=1)
    decoded = matrix.parts["values"].astype(np.float32) * np.repeat(
        matrix.parts["scales"], 32, axis=1
    )
    np.testing.assert_array_equal(decoded, levels[StoredInMxfp4.levels] * scales)


def test_nf4_becomes_integers_by_compression() -> None:
    spec = MatrixSpec((Tensor("packed", (2, 64)),), (2, 1, 64), is_integer=True)
    stored = StoredInFourBits()
    stored.encoding = Encoding("nf4", "f16", group_size=2)
    assert CompressedWeights(stored, MemoryWriter()).matrix(spec, "auto").encoding == Encoding(
        "u8", "f32", "u8"
    )


def test_four_bits_of_an_odd_number_of_columns_are_refused(tmp_path: Path) -> None:
    save(tmp_path / SINGLE_FILE, {"odd": np.ones((4, 7), np.float32)})
    weights = CompressedWeights(Checkpoint(tmp_path), MemoryWriter())
    with pytest.raises(
        ModelLoadError,
        match="tensor odd: --weights int4 requires an even number of columns, found 7",
    ):
        weights.matrix(MatrixSpec((Tensor("odd", (4, 7)),), (4, 7)), "int4")


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    """Prefixes of language models in checkpoints of several modalities are removed from names."""
    rows = np.ones((4, 8), np.float32)
    save(
        tmp_path / SINGLE_FILE,
        {"model.norm.weight": rows, "model.language_model.norm.weight": rows},
    )
    with pytest.raises(ModelLoadError, match=r"has tensor model\.norm\.weight twice"):
        Checkpoint(tmp_path)


def test_an_expert_is_a_part_of_the_matrix(weights: CompressedWeights) -> None:
    matrix = weights.matrix(MatrixSpec((Tensor("experts", (3, 4, 6)),), (3, 4, 6)), "f32")
    assert matrix.expert(2).shape == (4, 6)
    np.testing.assert_array_equal(matrix.expert(2).parts["values"], EXPERTS[2])
    assert np.shares_memory(matrix.expert(2).parts["values"], matrix.parts["values"])


def test_one_tensor_may_replace_several(weights: CompressedWeights) -> None:
    several = (Tensor("first", (4, 6)), Tensor("second", (4, 6)), Tensor("third", (4, 6)))
    spec = MatrixSpec(several, (3, 4, 6), instead=Tensor("experts", (3, 4, 6)))
    np.testing.assert_array_equal(read_values(weights, spec), EXPERTS)
    assert weights.used == {"experts"}
    spec = MatrixSpec(several[:2], (2, 4, 6), instead=Tensor("missing", (2, 4, 6)))
    np.testing.assert_array_equal(read_values(weights, spec), EXPERTS[:2])


def test_integers_are_refused_where_weights_are_expected(tmp_path: Path) -> None:
    """A graph would take them for weights; only lists of tokens are integers."""
    integers = np.arange(8)
    quantize.save(
        tmp_path / SINGLE_FILE,
        {"norm.weight": ("I64", integers), "head.token_ordering": ("I64", integers)},
    )
    weights = CompressedWeights(Checkpoint(tmp_path), MemoryWriter())
    assert weights.array("head.token_ordering", (8,)).tolist() == integers.tolist()
    with pytest.raises(ModelLoadError, match=r"norm\.weight is stored as I64; supported are BF16"):
        weights.array("norm.weight", (8,))
