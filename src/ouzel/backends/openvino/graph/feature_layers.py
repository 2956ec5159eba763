"""Some families take features of a layer before an encoder's last, or of several layers side by
side.
"""

from collections.abc import Callable, Sequence

from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.hf_config import HfConfig

MakeLayer = Callable[[Node, int], Node]  # what enters it, its number -> what leaves it
MAX_LAYERS = 64  # whose features are taken; those that are published take 4 and 5


def feature_layers(config: HfConfig, num_layers: int) -> tuple[int, ...]:
    """Reads `vision_feature_layer`: one or several, where 0 is what enters the first layer, and -1
    is the last.
    """
    key = "vision_feature_layer"
    several = isinstance(config.values.get(key), list)
    layers = config.integers(key) if several else [config.integer(key)]
    if not 1 <= len(layers) <= MAX_LAYERS or any(
        not -num_layers - 1 <= layer <= num_layers for layer in layers
    ):
        raise config.refuse(key, f"1 to {MAX_LAYERS} layers from {-num_layers - 1} to {num_layers}")
    return tuple(layer % (num_layers + 1) for layer in layers)


def rows_behind(
    b: VisionBuilder, rows: Node, layers: Sequence[int], size: int, make_layer: MakeLayer
) -> Node:
    """Returns the rows [..., size] as they are behind each of these layers, side by side.

    0 is what enters the first layer. Layers above the highest of them are not made.
    """
    found = {0: rows}
    for number in range(max(layers)):
        waiting = [layer for layer in dict.fromkeys(layers) if layer < number]
        rows, *others = carried(b, number, [rows, *(found[layer] for layer in waiting)], size)
        found |= dict(zip(waiting, others, strict=True)) | {number: rows}
        rows = found[number + 1] = make_layer(rows, number)
    return (
        found[layers[0]] if len(layers) == 1 else ops.concat([found[layer] for layer in layers], -1)
    )


def carried(b: VisionBuilder, layer: int, values: list[Node], size: int) -> list[Node]:
    """Brings all of them to the part in which the layer is."""
    if len(values) == 1:
        return [b.at_layer(layer, values[0])]
    before = ops.concat(values, -1)
    after = b.at_layer(layer, before)
    return values if after is before else split(after, *[size] * len(values))
