"""Tells which kernels a model uses: for its matrices, and for attention with a soft cap."""

import math
from collections.abc import Sequence

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.kernels.library import (
    Kernels,
    KernelsMissing,
    can_use_kernels,
    find_kernels,
)
from ouzel.backends.openvino.kernels.products import find_cells, find_products
from ouzel.backends.openvino.kernels.softcap import find_softcap
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig

_PACKED_TYPES = ("i4", "u4", "i8", "u8", "f4e2m1")


def has_mostly_packed(graphs: Sequence[ov.Model]) -> bool:
    """Tells whether packed matrices are more than half of the bytes of all constants."""
    packed = sum(
        _num_bytes(cells)
        for graph in graphs
        for node in find_products(graph)
        for cells in find_cells(node)
    )
    total = sum(_num_bytes(constant.output(0)) for constant in _constants(graphs))
    return 2 * packed > total


def name_kernels(graphs: Sequence[ov.Model]) -> str:
    """Returns the instructions of the kernels that the graphs use, empty if they use none."""
    found = find_kernels()
    uses_them = any(find_products(graph) for graph in graphs) or find_softcap(graphs) > 0
    return found.level if isinstance(found, Kernels) and uses_them else ""


def describe_products(graphs: Sequence[ov.Model], engine: EngineConfig) -> str:
    """Describes the kernels of a model with matrices of integers; empty for other models."""
    found = find_kernels()
    num_packed = sum(len(find_cells(node)) for graph in graphs for node in find_products(graph))
    if num_packed and isinstance(found, Kernels):
        return f"ouzel-kernels ({found.level}) multiply {num_packed} matrices"
    if isinstance(found, KernelsMissing) and can_use_kernels(engine) and _could_be_packed(graphs):
        return (
            "OpenVINO multiplies the matrices, and takes up to twice the time of ouzel-kernels: "
            f"{found.reason}"
        )
    return ""


def _could_be_packed(graphs: Sequence[ov.Model]) -> bool:
    """Tells whether graphs that are no IR have matrices that the kernels could multiply."""
    return any(
        constant.get_output_element_type(0).to_string() in _PACKED_TYPES
        and len(constant.get_output_shape(0)) > 1
        for constant in _constants(graphs)
    )


def _constants(graphs: Sequence[ov.Model]) -> list[Node]:
    return [
        node for graph in graphs for node in graph.get_ops() if node.get_type_name() == "Constant"
    ]


def _num_bytes(constant: Node) -> float:
    bits = constant.get_element_type().bitwidth
    return float(math.prod(constant.get_shape()) * bits / 8)
