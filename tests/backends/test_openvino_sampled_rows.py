"""After the last layer that mixes rows, a graph computes only the sampled rows."""

from collections.abc import Callable, Iterable

import pytest

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config.weights import read_weights
from tests.backends import GOLDEN, GOLDEN_NAMES


def find_reachable(
    starts: Iterable[Node], next_of: Callable[[Node], Iterable[Node]]
) -> dict[str, Node]:
    """Returns the nodes that a walk from `starts` reaches, by name, without `starts`."""
    reached: dict[str, Node] = {}
    waiting = [node for start in starts for node in next_of(start)]
    while waiting:
        node = waiting.pop()
        if node.get_name() not in reached:
            reached[node.get_name()] = node
            waiting += next_of(node)
    return reached


def list_readers(node: Node) -> list[Node]:
    return [place.get_node() for output in node.outputs() for place in output.get_target_inputs()]


def name_products(nodes: dict[str, Node]) -> set[str]:
    return {name for name, node in nodes.items() if "MatMul" in node.get_type_name()}


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_only_sampled_rows_pass_the_products_after_the_last_mixer(name: str) -> None:
    """The mixer's output projection is an exception if it has a bias.

    Latent attention has one more exception: a product for each head.
    """
    config = read_hf_config(GOLDEN / name).text_model()
    builder = Builder(MeasuredWeights(Checkpoint(GOLDEN / name)), read_weights("int8"))
    nodes = family(config.model_type)(config, builder).graph.get_ordered_ops()
    last_mixer = [node for node in nodes if "Paged" in node.get_type_name()][-1]
    after_mixer = name_products(find_reachable([last_mixer], list_readers))
    after_sampling = name_products(
        find_reachable(
            [node for node in nodes if node.get_friendly_name() == "sampled_rows"], list_readers
        )
    )
    assert len(after_mixer - after_sampling) <= (2 if "kv_lora_rank" in config.values else 1)
    # At least the head, and the mixer's output projection or the feed-forward layer.
    is_without_attention = config.model_type in ("mamba2", "falcon_mamba")
    has_head_only = is_without_attention and config.flag("use_bias")
    assert len(after_sampling) >= (1 if has_head_only else 2)
