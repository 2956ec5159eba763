"""Builds the parts of a model that a draft head of another checkpoint uses (draft_heads/)."""

from collections.abc import Callable

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.prediction import head_graph
from ouzel.backends.openvino.language_model import LentCache, LentParts
from ouzel.backends.openvino.library import ops, ov


def lend_parts(
    b: Builder,
    *,
    embed: Callable[[Node], Node],
    compute_logits: Callable[[Node], Node],
    hidden_size: int,
    caches: dict[str, LentCache],
) -> LentParts | None:
    """Returns the parts if a head drafts for this model.

    `embed` takes token ids [T] and returns the rows that enter the first layer.
    """
    if not b.lends_parts:
        return None
    return LentParts(
        head=head_graph(compute_logits, hidden_size),
        embedding=embedding_graph(embed),
        caches=caches,
    )


def embedding_graph(embed: Callable[[Node], Node]) -> ov.Model:
    """Returns a graph from `input_ids` to `embedded_rows`."""
    token_ids = ops.parameter([-1], ov.Type.i64)
    token_ids.output(0).set_names({"input_ids"})
    rows = ops.result(embed(token_ids))
    rows.output(0).set_names({"embedded_rows"})
    return ov.Model([rows], [token_ids], "ouzel embedding")
