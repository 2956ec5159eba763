"""Builds a model part by part; each part asks for its weights by name when it is used."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.adapter_shape import (
    HEAD,
    NO_ADAPTERS,
    AdaptedMatrix,
    AdaptedTable,
    AdapterLimits,
)
from ouzel.backends.openvino.graph.adapters import AdapterInputs
from ouzel.backends.openvino.graph.draft_rows import DraftRows, RowReader
from ouzel.backends.openvino.graph.images import ImageInputs, ImageShape
from ouzel.backends.openvino.graph.missing_parts import MissingParts, refuse_missing_parts
from ouzel.backends.openvino.graph.nodes import Node, integers, split
from ouzel.backends.openvino.graph.norms import Norm, add_norm_offset, normalise
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.query_scale import QueryScale
from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.graph.rotation import Angles, angles_input
from ouzel.backends.openvino.language_model import (
    LanguageModel,
    LentParts,
    PredictionGraphs,
    VectorHead,
)
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.cells import BLOCK_ROWS
from ouzel.backends.openvino.weights.renamed import RenamedWeights
from ouzel.backends.openvino.weights.source import (
    Matrix,
    MatrixSpec,
    Tensor,
    Weights,
    describe_matrix,
)
from ouzel.config.weights import WeightPlan, WidthOption
from ouzel.errors import ModelLoadError


class DraftHead(RowReader, Protocol):
    """An EAGLE-3 head, which drafts tokens from rows of the model's layers."""

    def build(self, b: "Builder", embedding: Matrix, rows: Sequence[Node]) -> PredictionGraphs:
        """Adds its part of the model's graph, and returns its own graph.

        `rows` are the inputs of `layers`; `embedding` is the model's.
        """
        ...


class Builder:
    """Builds the graph of a language model. Names are tensor names without `.weight`."""

    def __init__(
        self,
        weights: Weights,
        plan: WeightPlan,
        images: ImageShape | None = None,
        *,
        predicts: bool = False,
        lends_parts: bool = False,
        draft_head: DraftHead | None = None,
        adapters: AdapterLimits = NO_ADAPTERS,
        vector_head: VectorHead | None = None,
        graph: PagedGraph | None = None,
    ) -> None:
        """Begins a graph, or adds to `graph`.

        With `images` the language model takes images; with `predicts` it has a layer that predicts
        further tokens, with `draft_head` an EAGLE-3 head; with `lends_parts` an assistant
        uses parts of it; with a rank in `adapters` it takes adapters within these limits; with
        `vector_head` it makes vectors instead of tokens.
        """
        self.vector_head = vector_head
        self.has_transposed_layers = False  # True: stored [columns, rows], as a Conv1D has them
        self.has_relative_positions = True  # False: a shift of all positions changes the logits
        self._makes_vectors = False
        self.draft_rows = DraftRows(draft_head)
        keeps_rows = predicts or lends_parts or self.draft_rows.reads_last
        self.graph = graph or PagedGraph(keeps_rows=keeps_rows)
        self.predicts = predicts
        self.lends_parts = lends_parts
        self._draft_head = draft_head
        self._image_shape = images
        self._embedding: Tensor | None = None
        self._table: AdaptedTable | None = None  # the embedding of the tokens
        self._images: ImageInputs | None = None
        self._adapters: AdapterInputs | None = None
        if adapters.rank:  # a model in f32 has exact adapters, too
            dtype = ov.Type.f32 if plan.layers == "f32" else ov.Type.bf16
            self._adapters = AdapterInputs(self.graph, adapters, dtype)
        self._weights = weights
        self._plan = plan
        self.ropes: dict[str, Rope] = {}  # angles for the graph's inputs, by name
        self._query_scale: QueryScale | None = None

    def for_graph(self, graph_prefix: str, stored_prefix: str) -> "Builder":
        """Returns a builder for another graph of the same weights.

        Names with the prefix `graph_prefix` have the prefix `stored_prefix` in the weights. The
        graph takes images if this graph does.
        """
        weights = RenamedWeights(self._weights, graph_prefix, stored_prefix)
        return Builder(weights, self._plan, self._image_shape)

    def with_weights(self, weights: Weights, plan: WeightPlan) -> "Builder":
        """Returns a builder that adds to the same graph, from other weights."""
        return Builder(weights, plan, graph=self.graph)

    def has(self, name: str) -> bool:
        """Tells whether the tensor exists; `name` has its `.weight`."""
        return self._weights.has(name)

    def angles(self, rope: Rope, name: str = "default") -> Angles:
        """Adds inputs for the angles, which the host computes by `rope`."""
        self.ropes[name] = rope
        return angles_input(self.graph, name, 2 * len(rope.inverse_frequencies))

    def query_scale(self, scale: QueryScale) -> Node:
        """Adds an input for the scale of each row's queries, which the host computes; returns [T,
        1, 1].
        """
        self._query_scale = scale
        return ops.reshape(
            self.graph.input("query_scale", [-1], ov.Type.f32), integers(-1, 1, 1), False
        )

    def array(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Returns the tensor; `name` has its `.weight`."""
        return self._weights.array(name, shape)

    def linear(
        self,
        rows: Node,
        name: str,
        num_columns: int,
        num_rows: int,
        *,
        has_bias: bool = False,
        row_order: tuple[int, ...] | None = None,
        width: WidthOption | None = None,
    ) -> Node:
        """Multiplies the rows by the transpose of [num_rows, num_columns], the shape in
        checkpoints.
        """
        turns = self.has_transposed_layers and width is None
        spec = describe_matrix(name, num_rows, num_columns, row_order, is_transposed=turns)
        matrix = self._weights.matrix(spec, width or self._plan.layers)
        bias = self._bias(name, num_rows, row_order) if has_bias else None
        product = self.product(rows, matrix, bias)
        if width is not None:
            return product
        adapted = AdaptedMatrix(name, num_columns, num_rows, row_order, matrix, bias)
        return self._add_adapters(product, rows, adapted)

    def linears(
        self,
        rows: Node,
        name: str,
        num_columns: int,
        sizes: Sequence[int],
        *,
        has_bias: bool = False,
        row_order: tuple[int, ...] | None = None,
    ) -> list[Node]:
        """Multiplies the rows by the transposes of several matrices; returns a product for each.

        One tensor [sum(sizes), num_columns] has the matrices below each other, after its rows are
        brought into `row_order`; `sizes` are their numbers of rows. If the tensor is packed, the
        graph has an operation for each matrix, so that the kernels find their patterns. Else it
        multiplies the whole tensor and cuts the product.
        """
        num_rows = sum(sizes)
        turns = self.has_transposed_layers
        spec = describe_matrix(name, num_rows, num_columns, row_order, is_transposed=turns)
        matrix = self._weights.matrix(spec, self._plan.layers)
        bias = self._bias(name, num_rows, row_order) if has_bias else None
        fills_blocks = all(size % BLOCK_ROWS == 0 for size in sizes)
        if matrix.encoding.is_packed and fills_blocks and self._adapters is None:
            parts = [(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
            return [
                self.product(rows, matrix.rows(*part), None if bias is None else bias[slice(*part)])
                for part in parts
            ]
        adapted = AdaptedMatrix(name, num_columns, num_rows, row_order, matrix, bias)
        return split(self._add_adapters(self.product(rows, matrix, bias), rows, adapted), *sizes)

    def product(self, rows: Node, matrix: Matrix, bias: NDArray[np.float32] | None = None) -> Node:
        """Multiplies the rows by the transpose of the matrix, and adds the bias."""
        return self.graph.product(rows, matrix, bias)

    def matrix_per_head(
        self, name: str, num_heads: int, num_rows: int, num_columns: int, rows: range
    ) -> Node:
        """Returns [heads, len(rows), columns] of a tensor that has `num_rows` rows for each head.

        The narrowest width is bf16: the plugin would unpack narrower matrices of this form in every
        step.
        """
        shape = (num_heads, len(rows), num_columns)
        tensor = Tensor(name + ".weight", (num_heads * num_rows, num_columns))
        width: WidthOption = "f32" if self._plan.layers == "f32" else "bf16"
        return self.graph.matrix(
            self._weights.matrix(MatrixSpec((tensor,), shape, tuple(rows), num_rows), width)
        )

    def experts(self, spec: MatrixSpec) -> Matrix:
        """Returns the matrices [experts, rows, columns].

        The graph makes one expression of them, or one for each expert.
        """
        return self._weights.matrix(spec, self._plan.experts)

    def norm(self, rows: Node, name: str, size: int, norm: Norm) -> Node:
        normalised = normalise(rows, norm)
        if not norm.has_weight:
            product = ops.multiply(normalised, self.graph.array(np.ones(size, np.float32)))
        else:
            stored = self.array(name + ".weight", size)
            product = ops.multiply(normalised, self.graph.array(add_norm_offset(stored, norm)))
            if self._adapters is not None:
                product = self._adapters.add_norm(normalised, product, name + ".weight", stored)
        if not norm.has_bias:
            return product
        bias = self.array(name + ".bias", size)
        biased = ops.add(product, self.graph.array(bias))
        if self._adapters is None:
            return biased
        return self._adapters.add_norm_bias(biased, name + ".bias", bias)

    def embedding(self, name: str, num_rows: int, num_columns: int, *, is_head: bool) -> Matrix:
        """Returns the matrix for `embed`, and for the head if `is_head`."""
        width = self._plan.tied if is_head else self._plan.embedding
        if width is None:
            raise ModelLoadError(
                "config.json ties embedding and head, which are one matrix: --weights must name "
                f"the same width for both, given embedding={self._plan.embedding} and "
                f"head={self._plan.head}"
            )
        matrix = describe_matrix(name, num_rows, num_columns)
        self._embedding = matrix.tensors[0]
        weights = self._weights.matrix(matrix, width)
        if self._table is None:  # the first table is the table of the tokens
            self._table = AdaptedTable(name, num_rows, num_columns, weights)
        return weights

    def embed(
        self,
        embedding: Matrix,
        image_token_id: int | None = None,
        *,
        num_known: int | None = None,
    ) -> Node:
        """Returns the embeddings of the tokens.

        With `image_token_id`, tokens of images have the embedding of this id; call `with_images`
        before. With `num_known`, tokens from this id on have the embedding of token 0.
        """
        token_ids = self.graph.token_ids
        if num_known is not None:
            is_known = ops.less(token_ids, integers(num_known))
            token_ids = ops.select(is_known, token_ids, integers(0))
        if image_token_id is not None and self._images is not None:
            token_ids = self._images.token_ids(token_ids, image_token_id)
        rows = self.graph.embed(embedding, token_ids)
        if self._adapters is None or self._table is None or embedding is not self._table.weights:
            return rows
        return self._adapters.add_embedding(rows, self._table)

    @property
    def takes_images(self) -> bool:
        return self._image_shape is not None

    @property
    def scales_features(self) -> bool:
        """Tells whether an embedding factor may apply to the features of images."""
        return self._image_shape is None or not self._image_shape.enters_unscaled

    def with_images(self, rows: Node, hidden_size: int) -> Node:
        """Puts the features of images into the rows of the first layer, if the model takes
        images.
        """
        if self._image_shape is None:
            return rows
        self._images = ImageInputs(self.graph, self._image_shape, hidden_size)
        return self._images.embed(rows)

    def add_layer_features(self, rows: Node, layer: int) -> Node:
        """Adds the image features that enter after this layer."""
        return rows if self._images is None else self._images.add_features(rows, layer)

    def build_draft_head(self, embedding: Matrix) -> PredictionGraphs | None:
        """Adds the EAGLE-3 head, if there is one, after all layers; `embedding` is the model's."""
        if self._draft_head is None:
            return None
        return self._draft_head.build(self, embedding, self.draft_rows.in_order())

    def head(self, name: str, num_rows: int, num_columns: int) -> Matrix:
        return self._weights.matrix(describe_matrix(name, num_rows, num_columns), self._plan.head)

    def logits(self, rows: Node, head: Matrix, bias: NDArray[np.float32] | None = None) -> Node:
        """Multiplies the rows by the head, which may be the embedding.

        Adapters of the head are added, unless the head is a graph of its own, as with a prediction
        layer or an assistant.
        """
        product = self.product(rows, head, bias)
        if self.predicts or self.lends_parts:
            return product
        num_rows, num_columns = head.shape
        adapted = AdaptedMatrix(
            name=HEAD, num_columns=num_columns, num_rows=num_rows, weights=head, bias=bias
        )
        return self._add_adapters(product, rows, adapted)

    def vector_model(
        self, rows: Node, *, hidden_size: int, vocab_size: int, max_positions: int
    ) -> LanguageModel:
        """Returns a model that makes vectors of the rows after the final norm.

        The vectors are the rows themselves, or the labels that the head makes of them.
        """
        assert self.vector_head is not None
        self._makes_vectors = True
        if self.vector_head.num_labels:
            rows = self.linear(
                rows, "score", hidden_size, self.vector_head.num_labels, width=self._plan.head
            )
        return self.language_model(
            rows, hidden_size=hidden_size, vocab_size=vocab_size, max_positions=max_positions
        )

    def language_model(
        self,
        rows: Node,
        *,
        hidden_size: int,
        vocab_size: int,
        max_positions: int,
        prediction: PredictionGraphs | None = None,
        lent: LentParts | None = None,
    ) -> LanguageModel:
        """Returns the finished model.

        `rows` are the logits, or the hidden rows for the head of a prediction or with lent parts.

        Raises ModelLoadError if the family lacks a part that the options require.
        """
        assert self._image_shape is None or self._images is not None, (
            "families with an image shape call with_images"
        )
        missing = MissingParts(
            vectors=self.vector_head is not None and not self._makes_vectors,
            prediction=self.predicts and prediction is None,
            lent_parts=self.lends_parts and lent is None,
            draft_head=self._draft_head is not None and prediction is None,
        )
        refuse_missing_parts(missing)
        adapters = None if self._adapters is None else self._adapters.finish()
        gives_logits = lent is None and (prediction is None or prediction.head is None)
        return LanguageModel(
            graph=self.graph.finish(rows, "logits" if gives_logits else "hidden_rows"),
            arrays=self.graph.arrays + ([] if prediction is None else prediction.arrays),
            prediction=prediction,
            lent=lent,
            vector_head=self.vector_head,
            ropes=self.ropes,
            query_scale=self._query_scale,
            hidden_size=hidden_size,
            vocab_size=vocab_size,
            max_positions=max_positions,
            embedding=self._embedding,
            has_relative_positions=self.has_relative_positions,
            adapters=adapters,
        )

    def _bias(
        self, name: str, num_rows: int, row_order: tuple[int, ...] | None
    ) -> NDArray[np.float32]:
        bias = self.array(name + ".bias", num_rows)
        return bias if row_order is None else bias[list(row_order)]

    def _add_adapters(self, product: Node, rows: Node, matrix: AdaptedMatrix) -> Node:
        """Adds the adapters' product, if the model takes adapters of this matrix."""
        if self._adapters is None or not self._adapters.takes(matrix.name):
            return product
        return self._adapters.added(product, rows, matrix)
