"""Reads and changes graphs of an IR: an XML file, with the constants in the `.bin` file
beside it.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, put_in_place
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.entry_use import hold
from ouzel.errors import ModelLoadError


@dataclass(frozen=True)
class IrGraph:
    graph: ov.Model
    weights: NDArray[np.uint8]  # the graph's constants point into them
    mapping: mmap.mmap  # the mapped file of the weights


def read_graph(core: ov.Core, path: Path) -> IrGraph:
    """Reads a graph and maps its weights.

    Raises ModelLoadError if the weights cannot be read, and the errors of `core.read_model`.
    """
    mapping = map_weights(path)
    weights = np.frombuffer(mapping, np.uint8)
    graph = core.read_model(
        path.read_text(encoding="utf-8"), ov.Tensor(weights, shared_memory=True)
    )
    return IrGraph(graph, weights, mapping)


def map_weights(path: Path) -> mmap.mmap:
    """Maps the weights of a graph; a mapping of Ouzel's own can give its pages back (memory.py)."""
    weights = path.with_suffix(".bin")
    try:
        with weights.open("rb") as file:
            hold(file)
            # ACCESS_COPY, because openvino shares only writable memory
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # ValueError: the file is empty
        raise ModelLoadError(
            f"{weights}, the weights of {path.name}, cannot be read: {error}"
        ) from error


@contextmanager
def refuse_unreadable(path: Path, advice: str) -> Iterator[None]:
    """Raises ModelLoadError for `path` if the block fails to read its graphs or meets an unexpected
    form.
    """
    try:
        yield
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise ModelLoadError(f"{path} cannot be served: {error}. {advice}") from error


def add_input(graph: ov.Model, name: str, shape: list[int], dtype: ov.Type) -> Node:
    """Adds an input to the graph and returns it."""
    parameter = ops.parameter(shape, dtype, name=name)
    parameter.output(0).set_names({name})
    graph.add_parameters([parameter])
    return parameter


def replace_input(graph: ov.Model, name: str, value: Node) -> None:
    """Removes the input; its readers take the value instead."""
    port = graph.input(name)
    put_in_place(port, value)
    graph.remove_parameter(port.get_node())
