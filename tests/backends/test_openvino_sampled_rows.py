"""Behind the last layer that mixes rows, only those are computed whose logits are wanted."""

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


def reachable(starts: Iterable[Node], next_of: Callable[[Node], Iterable[Node]]) -> dict[str, Node]:
    """Returns nodes by name; `starts` are not among them."""
    found: dict[str, Node] = {}
    waiting = [node for start in starts for node in next_of(start)]
    while waiting:
        node = waiting.pop()
        if node.get_name() not in found:
            found[node.get_name()] = node
            waiting += next_of(node)
    return found


def readers(node: Node) -> list[Node]:
    return [place.get_node() for output in node.outputs() for place in output.get_target_inputs()]


def products(nodes: dict[str, Node]) -> set[str]:
    return {name for name, node in nodes.items() if "MatMul" in node.get_type_name()}


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_only_sampled_rows_pass_what_is_behind_the_last_mixer(name: str) -> None:
    """But for its own output projection, where that has a bias, and in latent attention one more, which is by head."""
    config = read_hf_config(GOLDEN / name).text_model()
    builder = Builder(MeasuredWeights(Checkpoint(GOLDEN / name)), read_weights("int8"))
    nodes = family(config.model_type)(config, builder).graph.get_ordered_ops()
    last_mixer = [node for node in nodes if "Paged" in node.get_type_name()][-1]
    behind = products(reachable([last_mixer], readers))
    of_sampled = products(
        reachable([node for node in nodes if node.get_friendly_name() == "sampled_rows"], readers)
    )
    assert len(behind - of_sampled) <= (2 if "kv_lora_rank" in config.values else 1)
    assert (
        len(of_sampled) >= 2
    )  # the head and the mixer's output projection, or the feed-forward layer
