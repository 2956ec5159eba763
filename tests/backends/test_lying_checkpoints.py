"""Damages each tensor of each quantised format; the error names the tensor.

Ouzel refuses a damaged file, or reads the same values as from the whole file. A damaged file never
leads to a traceback or to a NaN.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, MemoryWriter, Tensor
from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.config.weights import WidthOption
from ouzel.errors import ModelLoadError
from tests.backends import quantize
from tests.backends.quantize import Tensors, Weight
from tests.backends.quantized_formats import (
    FORMATS,
    MATRIX,
    SHAPE,
    Settings,
    matrix_in,
    open_checkpoint,
    random_weight,
)
from tests.release_only import release_only

Stored = tuple[str, NDArray[Any]]

FLOATS = ("F32", "F16", "BF16")
NOT_NUMBERS = (np.nan, np.inf, -np.inf)
NAN_OF_BYTES = {"F8_E4M3": 127, "F8_E8M0": 255}

# Here another type is another variant of the format, because the type of the tensor selects it.
NOT_DAMAGED = {
    ("float-block", ".weight_scale", "of another type"),  # bytes stand for powers of two
    ("fp8", ".weight_scale_inv", "of another type"),
    (
        "fp8-powers",
        ".weight_scale_inv",
        "of another type",
    ),  # floats are scales instead of powers of two
    ("fp8-tensor", ".weight_scale_inv", "of another type"),
    ("fp8-vllm", ".weight_scale", "of another type"),
    ("float", ".weight_scale", "of another type"),
    ("nvfp4", ".weight_scale", "of another type"),  # bytes mean mxfp4, with another group size
    # compressed-tensors also stores rounded weights as floats
    ("int", ".weight", "of another type"),
    ("int-asym", ".weight", "of another type"),
    ("int-tensor", ".weight", "of another type"),
    ("float", ".weight", "of another type"),
    ("float-block", ".weight", "of another type"),
}


def structural(stored: Stored) -> Iterator[tuple[str, Stored | None]]:
    """Yields damages of one tensor after which its values cannot be read."""
    dtype, values = stored
    yield "missing", None
    if values.ndim:
        yield "cut off", (dtype, values[:-1])
        yield "empty", (dtype, values[:0])
        yield "twice as wide", (dtype, np.concatenate([values, values], axis=-1))
    other = "U8" if dtype in FLOATS else "F32"
    yield "of another type", (other, np.zeros(values.shape, np.float32))


def make_matrix(
    directory: Path, tensors: Tensors, settings: Settings, *, packs: bool = False
) -> Matrix:
    """Saves the tensors, and compresses the matrix, for the kernels with `packs`."""
    quantize.save(directory / SINGLE_FILE, tensors)
    weights = CompressedWeights(open_checkpoint(directory, settings), MemoryWriter(), packs=packs)
    return weights.matrix(MatrixSpec((MATRIX,), SHAPE, may_be_packed=packs), "auto")


def read_matrix(directory: Path, tensors: Tensors, settings: Settings) -> Weight:
    """Returns the values of the compressed matrix."""
    matrix = make_matrix(directory, tensors, settings)
    return decode(matrix.encoding, matrix.parts)


# Each load of "gptq-dynamic" matches patterns in a process of its own, which takes 90 ms of CPU.
FORMATS_IN_EACH_RUN = [name for name in FORMATS if name != "gptq-dynamic"]


@pytest.mark.parametrize(
    "name", [*FORMATS_IN_EACH_RUN, *release_only("damages beside patterns", "gptq-dynamic")]
)
def test_the_error_names_a_missing_or_misshapen_tensor(name: str, tmp_path: Path) -> None:
    settings = FORMATS[name][1]
    tensors = matrix_in(name)[0]
    whole = read_matrix(tmp_path, tensors, settings)
    for tensor, stored in tensors.items():
        for damage, changed in structural(stored):
            others = {key: value for key, value in tensors.items() if key != tensor}
            try:
                read = read_matrix(
                    tmp_path, others if changed is None else others | {tensor: changed}, settings
                )
            except ModelLoadError as error:
                assert "tensor model.matrix." in str(error), (tensor, damage)
            else:
                is_same = read.shape == whole.shape and np.array_equal(read, whole)
                is_known = (name, tensor.removeprefix("model.matrix"), damage) in NOT_DAMAGED
                assert is_same or is_known, f"{tensor}, {damage}: other values without an error"


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_scales_that_are_not_finite_are_refused_by_name_and_without_a_warning(
    name: str, packs: bool, tmp_path: Path
) -> None:
    settings = FORMATS[name][1]
    tensors = matrix_in(name)[0]
    for tensor, (dtype, values) in tensors.items():
        if dtype not in FLOATS:
            continue
        for bad in NOT_NUMBERS:
            damaged = values.copy()
            damaged.reshape(-1)[-1] = bad
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(
                    ModelLoadError,
                    match=r"tensor model\.matrix.*(NaN or infinite|must be positive)",
                ):
                    changed = tensors | {tensor: (dtype, damaged)}
                    make_matrix(tmp_path, changed, settings, packs=packs)


@pytest.mark.parametrize(
    "name, end",
    [
        ("mxfp4", ".weight_scale"),
        ("nvfp4", ".weight_scale"),
        ("fp8", ".weight"),
        ("float", ".weight"),
        ("fp8-powers", ".weight_scale_inv"),
    ],
)
@pytest.mark.parametrize("packs", [False, True])
def test_a_byte_that_stands_for_nan_is_refused(
    name: str, end: str, packs: bool, tmp_path: Path
) -> None:
    tensors = matrix_in(name)[0]
    dtype, values = tensors["model.matrix" + end]
    damaged = values.copy()
    damaged.reshape(-1)[0] = NAN_OF_BYTES.get(dtype, 255)
    with pytest.raises(
        ModelLoadError, match=r"tensor model\.matrix\.weight has .* NaN or infinite"
    ):
        changed = tensors | {"model.matrix" + end: (dtype, damaged)}
        make_matrix(tmp_path, changed, FORMATS[name][1], packs=packs)


@pytest.mark.parametrize("width", ["auto", "int8", "int4", "bf16", "f32"])
@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_a_plain_matrix_with_a_weight_that_is_not_finite_is_refused(
    width: WidthOption, bad: float, tmp_path: Path
) -> None:
    first, second = random_weight(), random_weight()
    second[7, 9] = bad
    quantize.save(
        tmp_path / SINGLE_FILE, {"first.weight": ("F32", first), "second.weight": ("F32", second)}
    )
    names = (Tensor("first.weight", SHAPE), Tensor("second.weight", SHAPE))
    weights = CompressedWeights(Checkpoint(tmp_path), MemoryWriter())
    with pytest.raises(
        ModelLoadError,
        match=r"^tensor second\.weight has weights or scales that are NaN or infinite",
    ):
        weights.matrix(MatrixSpec(names, (2 * SHAPE[0], SHAPE[1])), width)


@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_a_norm_with_a_value_that_is_not_finite_is_refused(bad: float, tmp_path: Path) -> None:
    norm = np.ones(8, np.float32)
    norm[3] = bad
    quantize.save(tmp_path / SINGLE_FILE, {"norm.weight": ("F32", norm)})
    weights = CompressedWeights(Checkpoint(tmp_path), MemoryWriter())
    with pytest.raises(ModelLoadError, match=r"tensor norm\.weight has"):
        weights.array("norm.weight", (8,))


def with_desc_act(settings: Settings) -> Settings:
    return settings | {"desc_act": True}


Change = Callable[[Settings], Settings]
WITHOUT_ORDER: dict[str, tuple[str, Change, str]] = {
    "gptq": ("gptq-act-order", with_desc_act, ".g_idx"),
    "compressed-tensors": ("pack-act-order", dict, ".weight_g_idx"),
}


@pytest.mark.parametrize("method", WITHOUT_ORDER)
def test_an_order_of_columns_in_config_json_requires_its_tensor(
    method: str, tmp_path: Path
) -> None:
    name, change, end = WITHOUT_ORDER[method]
    tensors = matrix_in(name)[0]
    del tensors["model.matrix" + end]
    with pytest.raises(ModelLoadError, match=rf"tensor model\.matrix{end} is missing"):
        read_matrix(tmp_path, tensors, change(FORMATS[name][1]))
