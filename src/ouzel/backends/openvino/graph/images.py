"""Puts the features of images into a language model, in the rows that stand for images.

The input `image_rows` has the rows, and `image_features` their features; a step without images has
none, at no cost. With DeepStack, further features enter after chosen layers (Meng 2024, arXiv
2406.04334).
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.attention import TWO_WAY_BEGINS
from ouzel.backends.openvino.graph.nodes import Node, gather, int32, integers
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov


@dataclass(frozen=True, slots=True)
class ImageShape:
    """The images that a family's language model takes."""

    # layers after which further features enter, in ascending order
    deep_layers: tuple[int, ...] = ()
    # The embedding factor of the language model never applies to the features.
    enters_unscaled: bool = False
    # the tokens of an image, or of the whole prompt, attend to each other, also to later ones
    attends_to_whole_images: bool = False
    attends_to_whole_prompts: bool = False


class ImageInputs:
    """Adds the inputs for images to a graph."""

    def __init__(self, graph: PagedGraph, shape: ImageShape, hidden_size: int) -> None:
        self._shape = shape
        self._rows = graph.input("image_rows", [-1], ov.Type.i64)
        self._features = graph.input(
            "image_features", [1 + len(shape.deep_layers), -1, hidden_size], ov.Type.f32
        )
        if shape.attends_to_whole_images or shape.attends_to_whole_prompts:
            begins = graph.input(TWO_WAY_BEGINS, [-1], ov.Type.i32)
            graph.two_way_tokens = ops.convert(ops.greater_equal(begins, int32(0)), "i32")

    def embed(self, rows: Node) -> Node:
        """Puts the features into the embeddings [T, hidden_size], without scaling."""
        return ops.scatter_update(rows, self._rows, self._level(0), ops.constant(np.int64(0)))

    def token_ids(self, token_ids: Node, instead: int) -> Node:
        """Replaces the ids of image tokens by `instead`."""
        ids = ops.broadcast(integers(instead), ops.shape_of(self._rows))
        return ops.scatter_update(token_ids, self._rows, ids, ops.constant(np.int64(0)))

    def add_features(self, rows: Node, layer: int) -> Node:
        """Adds the features that enter after this layer."""
        if layer not in self._shape.deep_layers:
            return rows
        level = self._level(1 + self._shape.deep_layers.index(layer))
        added = ops.add(gather(rows, self._rows), level)
        return ops.scatter_update(rows, self._rows, added, ops.constant(np.int64(0)))

    def _level(self, number: int) -> Node:
        return ops.gather(self._features, ops.constant(np.int64(number)), ops.constant(np.int64(0)))
