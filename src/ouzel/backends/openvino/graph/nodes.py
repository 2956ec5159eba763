"""Defines short names for the nodes that all parts of graphs are made of.

Activations are [T, ...]: all scheduled tokens of all sequences, one after the other, without a
batch axis. Small constants are made once and shared: otherwise they would be a third of the nodes
of a graph of 28 layers, and every pass of the compiler would visit them. Constants never change.
"""

from functools import cache
from typing import Any

import numpy as np

from ouzel.backends.openvino.library import ops, ov

Node = Any  # an openvino node or output; the package's type stubs do not cover the opsets

# operations that decode a matrix from its constants
_DECODING = ("Convert", "Multiply", "Subtract", "Reshape")


@cache
def integers(*values: int) -> Node:
    return ops.constant(np.array(values, np.int64))


@cache
def _int64(value: int) -> Node:
    return ops.constant(np.int64(value))


@cache
def int32(value: int) -> Node:
    return ops.constant(np.int32(value))


def real(value: float) -> Node:
    return _real(np.float32(value).tobytes())


@cache
def _real(value: bytes) -> Node:
    # keyed by bytes, because 0 and -0 are equal as numbers
    return ops.constant(np.frombuffer(value, np.float32)[0])


@cache
def empty(dtype: type[np.generic], rank: int = 1) -> Node:
    return ops.constant(np.zeros([0] * rank, dtype))


def get_output(node: Node) -> Node:
    """Returns the only output of a node; an output, as from `split`, is returned unchanged."""
    return node if isinstance(node, ov.Output) else node.output(0)


def find_constant(matrix: Node) -> Node | None:
    """Returns the constant with the values of an encoded matrix or bias, None for everything else.

    Conversions, zero points, scales and a reshape may stand between the constant and the node
    `matrix`.
    """
    while matrix.get_type_name() in _DECODING:
        matrix = matrix.input_value(0).get_node()
    return matrix if matrix.get_type_name() == "Constant" else None


def read_number(node: Node) -> float | None:
    """Returns the only element of a constant, None for everything else."""
    if node.get_type_name() != "Constant":
        return None
    values = node.get_data().reshape(-1)
    return float(values[0]) if values.size == 1 else None


def readers(value: Node) -> list[Node]:
    """Returns the nodes that take an output; a node that takes it twice is there twice."""
    return [each.get_node() for each in value.get_target_inputs()]


def reader_names(value: Node) -> set[str]:
    return {node.get_name() for node in readers(value)}


def only_reader(value: Node) -> Node | None:
    """Returns the node that takes an output, None if there is not exactly one."""
    found = readers(value)
    return found[0] if len(found) == 1 else None


def is_same(one: Node, other: Node) -> bool:
    """Tells whether two values are the same output of the same node."""
    return (one.get_node().get_name(), one.get_index()) == (
        other.get_node().get_name(),
        other.get_index(),
    )


def put_in_place(port: Node, value: Node) -> None:
    """Gives the value to all readers of the output port.

    The names stay with the port, unlike with OpenVINO's `replace`.
    """
    for reader in list(port.get_target_inputs()):
        reader.replace_source_output(get_output(value))


def gather(table: Node, rows: Node) -> Node:
    """Takes rows of a table along its first axis."""
    return ops.gather(table, rows, _int64(0))


def split_heads(rows: Node, num_heads: int, head_dim: int) -> Node:
    """Turns [T, heads * head_dim] into [T, heads, head_dim]."""
    return ops.reshape(rows, integers(-1, num_heads, head_dim), False)


def merge_heads(heads: Node) -> Node:
    """Turns [T, heads, head_dim] into [T, heads * head_dim]."""
    return ops.reshape(heads, integers(0, -1), True)


def split(rows: Node, *sizes: int) -> list[Node]:
    """Cuts the last axis into parts of these sizes."""
    parts: list[Node] = ops.variadic_split(rows, _int64(-1), integers(*sizes)).outputs()
    return parts


def part(rows: Node, begin: int, end: int, axis: int) -> Node:
    """Takes the places from `begin` to `end` of one axis."""
    return ops.slice(rows, integers(begin), integers(end), integers(1), integers(axis))


def scaled(rows: Node, factor: float) -> Node:
    return rows if factor == 1.0 else ops.multiply(rows, real(factor))
