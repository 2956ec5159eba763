"""Collects the rows of a model's layers that an EAGLE-3 head reads."""

from collections.abc import Sequence
from typing import Protocol

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.paged import PagedGraph


class RowReader(Protocol):
    """Tells which rows of the model an EAGLE-3 head reads."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Returns the layers whose inputs it reads; the number of all layers stands for the rows
        after the last one.
        """
        ...

    @property
    def reads_last_rows(self) -> bool: ...


class DraftRows:
    """The rows of a model that an EAGLE-3 head reads; without a head it collects none."""

    def __init__(self, head: RowReader | None) -> None:
        self._layers = () if head is None else head.layers
        self.reads_last = head is not None and head.reads_last_rows
        self._rows: dict[int, Node] = {}

    def note_input(self, rows: Node, layer: int) -> None:
        """Keeps the rows that enter this layer, if the head reads them."""
        if layer in self._layers:
            self._rows[layer] = rows

    def end_layers(self, graph: PagedGraph, rows: Node, num_layers: int) -> Node:
        """Returns the sampled rows after the last layer, and keeps all of them if the head reads
        them.
        """
        if not self.reads_last:
            return rows
        self.note_input(rows, num_layers)
        return graph.sample_kept_rows(rows)

    def in_order(self) -> Sequence[Node]:
        """Returns the rows in the order of the head's layers."""
        return [self._rows[layer] for layer in self._layers]
