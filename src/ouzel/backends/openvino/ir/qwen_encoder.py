"""Joins the two graphs of Qwen2-VL's and Qwen2.5-VL's vision encoders into one with Ouzel's inputs.

The first graph embeds patches (`openvino_vision_embeddings_model.xml`); the second has the blocks
and makes features (`openvino_vision_embeddings_merger_model.xml`). The second takes angles, and
masks over all pairs of patches, whose memory would grow with the square of the patches. The joined
graph takes cosines and sines instead, which bf16 represents better, and no mask: one pass is one
image, all of whose patches attend to each other, and windows are gathered.
"""

from collections.abc import Callable

import numpy as np

from ouzel.backends.openvino.graph.nodes import Node, integers, put_in_place
from ouzel.backends.openvino.graph.patches import all_see_all
from ouzel.backends.openvino.graph.qwen_vision import QwenVisionShape, make_passes
from ouzel.backends.openvino.ir.graphs import add_input, replace_input
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision import qwen2_5_vl, qwen2_vl
from ouzel.backends.openvino.vision_model import Inputs, Passes
from ouzel.checkpoint.hf_config import HfConfig

FILES = ("openvino_vision_embeddings_model.xml", "openvino_vision_embeddings_merger_model.xml")
ATTENTION = "ScaledDotProductAttention"

# takes queries, keys and values, each [patches, heads, head_dim]; gives the same shape
Attend = Callable[[Node, Node, Node], Node]


def qwen2_vl_encoder(
    config: HfConfig, embedding: ov.Model, merger: ov.Model
) -> tuple[ov.Model, Passes]:
    shape = qwen2_vl.vision_shape(config)
    return join_graphs(embedding, merger, shape, {"attention_mask": all_see_all}), make_passes(
        shape
    )


def qwen2_5_vl_encoder(
    config: HfConfig, embedding: ov.Model, merger: ov.Model
) -> tuple[ov.Model, Passes]:
    shape = qwen2_5_vl.vision_shape(config)
    windows = [add_input(merger, name, *kind) for name, kind in qwen2_5_vl.WINDOW_INPUTS.items()]

    def within_windows(query: Node, key: Node, value: Node) -> Node:
        return qwen2_5_vl.seen_in_windows(query, key, value, windows)

    graph = join_graphs(
        embedding,
        merger,
        shape,
        {"attention_mask": all_see_all, "window_attention_mask": within_windows},
    )

    def as_they_are(rows: int, columns: int) -> Inputs:
        """Leaves every patch in its place; the windows find their patches by themselves."""
        return {"window_index": np.arange(rows * columns // shape.merge**2)}

    return graph, make_passes(shape, qwen2_5_vl.make_window_inputs(config, shape), as_they_are)


def join_graphs(
    embedding: ov.Model, merger: ov.Model, shape: QwenVisionShape, attends: dict[str, Attend]
) -> ov.Model:
    """Returns the second graph with `patches` as its input.

    `attends` has the attention that replaces the attention with a mask, by the name of the mask.
    """
    embedding.input(0).set_names({"patches"})
    replace_input(merger, "hidden_states", embedding.get_results()[0].input_value(0))
    merger.add_parameters(embedding.get_parameters())
    for name, kind in (("cos", "Cos"), ("sin", "Sin")):
        values = add_input(merger, name, [-1, shape.head_dim], ov.Type.f32)
        for node in find_nodes(merger, kind):
            put_in_place(node.output(0), values)
    for node in find_nodes(merger, ATTENTION):
        put_in_place(node.output(0), replace_attention(node, attends))
    for name in ("rotary_pos_emb", *attends):
        merger.remove_parameter(merger.input(name).get_node())
    merger.validate_nodes_and_infer_types()
    return merger


def replace_attention(node: Node, attends: dict[str, Attend]) -> Node:
    """Returns the attention that replaces the masked attention `node`.

    `attends` has the replacement for each mask, by the name of the input. Inputs and result have
    the layout of the node: [heads, patches, head_dim].
    """
    query, key, value, *others = node.input_values()
    names = [each.get_node().get_friendly_name() for each in others]
    if len(names) != 1 or names[0] not in attends:
        raise RuntimeError(
            f"attention must have one of these masks: {', '.join(attends)}, found {names}"
        )
    heads = (ops.transpose(each, integers(1, 0, 2)) for each in (query, key, value))
    return ops.transpose(attends[names[0]](*heads), integers(1, 0, 2))


def find_nodes(graph: ov.Model, kind: str) -> list[Node]:
    """Returns the nodes of this type. Raises RuntimeError if the graph has none."""
    found = [node for node in graph.get_ordered_ops() if node.get_type_name() == kind]
    if not found:
        raise RuntimeError(f"its graph has no {kind}")
    return found
