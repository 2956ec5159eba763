"""Reads the tensors of a Whisper model that Optimum has exported as OpenVINO IR.

The graphs of the encoder and the decoder are not run: their constants are the weights of Ouzel's
own graphs. A constant has the name of its parameter (`self.layers.0.fc1._openvino_orig_weight`),
or no name, and its user has the name of the module (`__module.layer_norm/aten::layer_norm/Add`).
Operations between constants (the scales and zero points of small integers) are computed once.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import op, ov
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.errors import ModelLoadError

ENCODER_FILE, DECODER_FILE = "openvino_encoder_model.xml", "openvino_decoder_model.xml"
_CONSTANT = "Constant"
_OF_CONSTANTS = {"Convert", "Subtract", "Multiply", "Reshape", "Transpose", "Unsqueeze"}
_PARAMETER = re.compile(r"self\.(.+?)\.(?:_openvino_orig_)?(weight|bias)(?:_compressed)?(?:/.*)?")
_MODULE = re.compile(r"__module\.([^/]+)/")
_KINDS = {"Multiply": "weight", "Add": "bias"}  # the tensor that an operation reads


def holds_whisper_ir(directory: Path) -> bool:
    return all((directory / name).is_file() for name in (ENCODER_FILE, DECODER_FILE))


def list_files(directory: Path) -> list[Path]:
    """Returns the files of both graphs, weights included."""
    graphs = [directory / name for name in (ENCODER_FILE, DECODER_FILE)]
    return [*graphs, *(each.with_suffix(".bin") for each in graphs)]


class WhisperIr:
    """Reads tensors by their names in transformers; implements `Tensors`."""

    def __init__(self, directory: Path) -> None:
        """Reads both graphs. Raises ModelLoadError."""
        self._directory = directory
        self._core = ov.Core()
        # A node does not keep its graph alive.
        self._graphs = [self._read(name) for name in (ENCODER_FILE, DECODER_FILE)]
        self._types: set[str] = set()
        self._values: dict[str, ov.Node] = {}
        for side, graph in zip(("encoder", "decoder"), self._graphs, strict=True):
            for constant in graph.get_ops():
                if constant.get_type_name() == _CONSTANT:
                    self._take(constant, side)

    @property
    def types(self) -> list[str]:
        """Returns the names of all types of numbers in matrices."""
        return sorted(self._types)

    def names(self) -> Iterable[str]:
        return self._values

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        self._find(tensor)
        return None  # integers are encoded anew

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        self._find(tensor)
        return None

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        raise AssertionError("no tensor is kept in its stored encoding")

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        node = self._find(tensor)
        yield self._compute(node).reshape(tensor.shape)

    def _read(self, name: str) -> ov.Model:
        try:
            return self._core.read_model(self._directory / name)
        except RuntimeError as error:
            raise ModelLoadError(
                f"{self._directory / name} is no graph of OpenVINO: {error}"
            ) from error

    def _take(self, constant: ov.Node, side: str) -> None:
        """Keeps the value of a constant under the name of its tensor, if it has one."""
        value = _follow(constant)
        name = _name_tensor(constant, value, side)
        if name is None:
            return
        if "/" not in constant.get_friendly_name() and not _is_vector(constant):
            self._types.add(constant.get_element_type().get_type_name())
        self._values[plain_name(name)] = value

    def _find(self, tensor: Tensor) -> ov.Node:
        """Returns the node of a tensor. Raises ModelLoadError if it is missing or misshapen."""
        node = self._values.get(tensor.name)
        if node is None:
            raise ModelLoadError(
                f"{self._directory}: the graphs have no constant for {tensor.name} "
                "(its name in transformers)"
            )
        shape = list(node.get_output_shape(0))
        if [each for each in shape if each > 1] != [each for each in tensor.shape if each > 1]:
            raise ModelLoadError(
                f"{self._directory}: the constant of {tensor.name} has the shape {shape}, "
                f"but config.json requires {list(tensor.shape)}"
            )
        return node

    def _compute(self, node: ov.Node) -> NDArray[np.float32]:
        graph = ov.Model([op.Result(node.output(0))], [], "constant")
        options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        result = self._core.compile_model(graph, "CPU", options)({})[0]
        values: NDArray[np.float32] = result.astype(np.float32)
        return values


def _follow(constant: ov.Node) -> ov.Node:
    """Returns the last node that depends on constants alone and has this one as input."""
    node = constant
    while True:
        users = [each.get_node() for each in node.output(0).get_target_inputs()]
        if not users or not _depends_on_constants(users[0]):
            return node
        node = users[0]


def _depends_on_constants(node: ov.Node) -> bool:
    if node.get_type_name() == _CONSTANT:
        return True
    return node.get_type_name() in _OF_CONSTANTS and all(
        _depends_on_constants(each.get_source_output().get_node()) for each in node.inputs()
    )


def _name_tensor(constant: ov.Node, value: ov.Node, side: str) -> str | None:
    """Returns the name of the tensor in transformers, None for a constant that is no tensor."""
    named = _PARAMETER.fullmatch(constant.get_friendly_name())
    if named is not None:
        return _join_names(side, named[1], named[2])
    for user in value.output(0).get_target_inputs():
        node = user.get_node()
        module, kind = _MODULE.match(node.get_friendly_name()), _KINDS.get(node.get_type_name())
        if module is not None and kind is not None and _is_vector(value):
            return _join_names(side, module[1], kind)
    return None


def _is_vector(node: ov.Node) -> bool:
    num_axes: int = sum(each > 1 for each in node.get_output_shape(0))
    return num_axes == 1


def _join_names(side: str, module: str, kind: str) -> str:
    """Names begin at the model that was exported, which may be the part itself."""
    for prefix in ("model.", f"{side}."):
        module = module.removeprefix(prefix)
    return f"model.{side}.{module}.{kind}"
