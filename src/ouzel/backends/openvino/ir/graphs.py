"""A graph of an IR is an XML file; its constants lie in the file beside it, `.bin`."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, output_of
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.entry_use import hold
from ouzel.errors import ModelLoadError


@dataclass(frozen=True)
class IrGraph:
    graph: ov.Model
    weights: NDArray[np.uint8]  # the graph's constants point into them
    mapping: mmap.mmap  # of the file that the weights lie in


def read_graph(core: ov.Core, path: Path) -> IrGraph:
    """Raises ModelLoadError where the weights cannot be read, and what `core.read_model` raises."""
    mapping = map_weights(path)
    weights = np.frombuffer(mapping, np.uint8)
    graph = core.read_model(
        path.read_text(encoding="utf-8"), ov.Tensor(weights, shared_memory=True)
    )
    return IrGraph(graph, weights, mapping)


def map_weights(path: Path) -> mmap.mmap:
    """Maps them here, rather than leaving it to OpenVINO, so that the pages can be given back
    (memory.py).
    """
    weights = path.with_suffix(".bin")
    try:
        with weights.open("rb") as file:
            hold(file)
            return mmap.mmap(
                file.fileno(), 0, access=mmap.ACCESS_COPY
            )  # openvino shares only writable memory
    except (OSError, ValueError) as error:  # ValueError: the file is empty
        raise ModelLoadError(
            f"{weights}, the weights of {path.name}, cannot be read: {error}"
        ) from error


@contextmanager
def refused(path: Path, advice: str) -> Iterator[None]:
    """Raises ModelLoadError where the graphs of the path cannot be read, or are not made as the
    block expects.
    """
    try:
        yield
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise ModelLoadError(f"{path} cannot be served: {error}. {advice}") from error


def add_input(graph: ov.Model, name: str, shape: list[int], dtype: ov.Type) -> Node:
    parameter = ops.parameter(shape, dtype, name=name)
    parameter.output(0).set_names({name})
    graph.add_parameters([parameter])
    return parameter


def replace_input(graph: ov.Model, name: str, value: Node) -> None:
    """Removes the input; its readers take the value instead."""
    port = graph.input(name)
    put_in_place(port, value)
    graph.remove_parameter(port.get_node())


def put_in_place(port: Node, value: Node) -> None:
    """Gives the value to all readers of the output port. Names stay with the port, unlike by
    `replace`.
    """
    for reader in port.get_target_inputs():
        reader.replace_source_output(output_of(value))
