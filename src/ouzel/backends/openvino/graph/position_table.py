"""Adds learned embeddings of positions to the embeddings of tokens."""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, gather
from ouzel.backends.openvino.library import ops, ov


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTable:
    num_positions: int  # no request is longer
    name: str = "model.embed_positions"
    offset: int = 0  # rows of the table before the row of position 0


def add_positions(b: Builder, rows: Node, table: PositionTable, num_columns: int) -> Node:
    """Adds the embeddings of the positions to rows [T, num_columns].

    The table stays in f32: it is small, and its rows enter all layers.
    """
    b.has_relative_positions = False
    size = table.offset + table.num_positions
    values = b.array(table.name + ".weight", size, num_columns)[table.offset :]
    positions = b.graph.input("position_ids", [-1], ov.Type.i64)
    return ops.add(rows, gather(b.graph.array(values), positions))
