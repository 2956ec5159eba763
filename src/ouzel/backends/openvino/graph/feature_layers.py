"""Takes the features of an encoder from chosen layers, of several layers side by side."""

from collections.abc import Callable, Sequence

from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig

# takes the rows that enter a layer, and its number; gives the rows after it
MakeLayer = Callable[[Node, int], Node]
MAX_LAYERS = 64  # most layers whose features are taken; published models take up to 5


def feature_layers(config: HfConfig, num_layers: int) -> tuple[int, ...]:
    """Reads `vision_feature_layer`: one layer or several.

    0 is the input of the first layer, and -1 is the last layer.
    """
    key = "vision_feature_layer"
    several = isinstance(config.values.get(key), list)
    layers = config.integers(key) if several else [config.integer(key)]
    if not 1 <= len(layers) <= MAX_LAYERS or not all(
        has_layer(layer, num_layers) for layer in layers
    ):
        raise config.refuse(key, f"1 to {MAX_LAYERS} layers from {-num_layers - 1} to {num_layers}")
    return tuple(layer % (num_layers + 1) for layer in layers)


def find_layer(config: HfConfig, key: str, layer: int, num_layers: int) -> int:
    """Returns the number of one layer, which config.json may count from the end."""
    if not has_layer(layer, num_layers):
        raise config.refuse(key, f"layers from {-num_layers - 1} to {num_layers}")
    return layer % (num_layers + 1)


def has_layer(layer: int, num_layers: int) -> bool:
    return -num_layers - 1 <= layer <= num_layers


def collect_layer_rows(
    b: VisionBuilder, rows: Node, layers: Sequence[int], size: int, make_layer: MakeLayer
) -> Node:
    """Returns the rows [..., size] after each of these layers, side by side.

    0 is the input of the first layer. Layers above the highest of them are not built.
    """
    found = {0: rows}
    for number in range(max(layers)):
        waiting = [layer for layer in dict.fromkeys(layers) if layer < number]
        rows, *others = carry_values(b, number, [rows, *(found[layer] for layer in waiting)], size)
        found |= dict(zip(waiting, others, strict=True)) | {number: rows}
        rows = found[number + 1] = make_layer(rows, number)
    return (
        found[layers[0]] if len(layers) == 1 else ops.concat([found[layer] for layer in layers], -1)
    )


def carry_values(b: VisionBuilder, layer: int, values: list[Node], size: int) -> list[Node]:
    """Carries all values to the part of the graph with this layer."""
    if len(values) == 1:
        return [b.at_layer(layer, values[0])]
    before = ops.concat(values, -1)
    after = b.at_layer(layer, before)
    return values if after is before else split(after, *[size] * len(values))
