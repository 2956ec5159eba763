"""Properties that a graph is compiled with."""

import pytest

from ouzel.backends.openvino.compilation import compile_properties
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.config import EngineConfig, Precision

GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"


def model_of(*shapes: list[int], dtype: str = "i4", hidden_size: int = 1024) -> LanguageModel:
    """Its graph has compressed matrices of these shapes."""
    matrices = [ops.parameter(shape, getattr(ov.Type, dtype)) for shape in shapes]
    constants = [ops.constant(ov.Tensor(getattr(ov.Type, dtype), shape)) for shape in shapes]
    results = [ops.result(ops.convert(constant, "f32")) for constant in constants]
    graph = ov.Model(results, matrices, "compressed")
    return LanguageModel(graph=graph, arrays=[], ropes={}, hidden_size=hidden_size, vocab_size=8, max_positions=8)


@pytest.mark.parametrize("precision", ["auto", "int8"])
def test_groups_of_activations_fit_into_those_of_weights(precision: Precision) -> None:
    engine = EngineConfig(precision=precision)
    assert compile_properties(engine, model_of([8, 1024], dtype="u8"))[GROUP_SIZE] == 64
    assert compile_properties(engine, model_of([8, 8, 128]))[GROUP_SIZE] == 64
    assert compile_properties(engine, model_of([8, 8, 128], [4, 8, 32, 32]))[GROUP_SIZE] == 32
    assert compile_properties(engine, model_of([8, 8, 128], [8, 8, 1], dtype="u8"))[GROUP_SIZE] == 64  # zero points
    assert compile_properties(engine, model_of([8, 32, 32], dtype="i8"))[GROUP_SIZE] == 32
    assert compile_properties(engine, model_of([8, 32], dtype="u8", hidden_size=32))[GROUP_SIZE] == 32
    assert compile_properties(engine, model_of([8, 64, 16]))[GROUP_SIZE] == 0


def test_f32_rounds_no_activations() -> None:
    properties = compile_properties(EngineConfig(precision="f32"), model_of([8, 1024], dtype="u8"))
    assert properties[GROUP_SIZE] == 0
    assert properties["INFERENCE_PRECISION_HINT"] == ov.Type.f32
