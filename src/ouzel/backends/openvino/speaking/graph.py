"""Reads the graph of a Kokoro model, and finds its inputs and its sound.

Published graphs differ in names: `tokens` or `input_ids`, `style` or `ref_s`, `audio` or
`waveform`. Newer ONNX files take the speed as an integer.
"""

import logging
import mmap
from dataclasses import dataclass
from pathlib import Path

from ouzel.backends.openvino.ir.graphs import read_graph, refuse_unreadable
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.speaking.dynamic_products import restore_real_products
from ouzel.errors import ModelLoadError
from ouzel.kokoro_files.files import IR_FILE
from ouzel.kokoro_files.model_directory import ONNX_FILE
from ouzel.kokoro_files.voices import STYLE_SIZE

logger = logging.getLogger(__name__)

_TOKENS, _STYLE, _SPEED = ("tokens", "input_ids"), ("style", "ref_s"), ("speed",)
_SOUND = ("audio", "waveform")
_ADVICE = "It must be a Kokoro model with the inputs tokens, style and speed"


@dataclass(frozen=True, slots=True)
class SpeakingPorts:
    """The names of the inputs, and the index of the output with the samples."""

    tokens: str
    style: str
    speed: str
    sound: int


@dataclass(frozen=True, slots=True)
class SpeakingGraph:
    graph: ov.Model
    ports: SpeakingPorts
    weights: str  # ir or onnx
    num_bytes: int  # bytes of the files
    mappings: tuple[mmap.mmap, ...]  # files of an IR's weights, mapped
    arrays: tuple[object, ...]  # the graph's constants point into them


def load_speaking_graph(core: ov.Core, directory: Path) -> SpeakingGraph:
    """Reads the graph of a made directory. Raises ModelLoadError."""
    is_ir = (directory / IR_FILE).is_file()
    path = directory / (IR_FILE if is_ir else ONNX_FILE)
    with refuse_unreadable(path, _ADVICE):
        mappings: tuple[mmap.mmap, ...] = ()
        arrays: tuple[object, ...] = ()
        if is_ir:
            read = read_graph(core, path)
            graph, mappings, arrays = read.graph, (read.mapping,), (read.weights,)
        else:
            graph = core.read_model(path)
        tokens, style, speed = (
            _find_port(graph.inputs, names, path) for names in (_TOKENS, _STYLE, _SPEED)
        )
        _check_style(graph.input(style), path)
        _take_real_speed(graph, speed)
        num_changed = restore_real_products(graph)
    if num_changed:
        logger.info("%d products of %s take unrounded activations", num_changed, path.name)
    weight_files = [path, *directory.glob("*.bin"), *directory.glob("*_data")]
    return SpeakingGraph(
        graph=graph,
        ports=SpeakingPorts(tokens, style, speed, _find_sound(graph)),
        weights="ir" if is_ir else "onnx",
        num_bytes=sum(each.stat().st_size for each in weight_files),
        mappings=mappings,
        arrays=arrays,
    )


def _find_port(ports: list[ov.Output], names: tuple[str, ...], path: Path) -> str:
    found = [name for port in ports for name in names if name in port.get_names()]
    if not found:
        there = ", ".join(sorted(name for port in ports for name in port.get_names()))
        raise ModelLoadError(
            f"{path} must have an input {' or '.join(names)}, its inputs are {there}. {_ADVICE}"
        )
    return found[0]


def _find_sound(graph: ov.Model) -> int:
    """Returns the index of the output by its name; the first output has the sound otherwise."""
    named = [
        index
        for index, port in enumerate(graph.outputs)
        if any(name in port.get_names() for name in _SOUND)
    ]
    return named[0] if named else 0


def _check_style(port: ov.Output, path: Path) -> None:
    shape = port.get_partial_shape()
    if len(shape) != 2 or not shape[1].compatible(ov.Dimension(STYLE_SIZE)):
        raise ModelLoadError(
            f"{path}: the input {port.get_any_name()} must have the shape [1, {STYLE_SIZE}], "
            f"found {shape}. {_ADVICE}"
        )


def _take_real_speed(graph: ov.Model, name: str) -> None:
    """Makes a real number of an integer speed, which the graph converts to one anyway.

    Raises RuntimeError if the graph computes with the integer.
    """
    parameter = graph.input(name).get_node()
    if parameter.get_element_type().is_integral():
        parameter.set_element_type(ov.Type.f32)
        graph.validate_nodes_and_infer_types()
