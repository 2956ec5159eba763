"""Reads the rotary positions of families whose config.json has a theta for each layer."""

from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.checkpoint.context_length import rope_section
from ouzel.checkpoint.hf_config import HfConfig


def read_layer_ropes(config: HfConfig, head_dim: int) -> tuple[Rope | None, ...]:
    """Returns the rope of each layer; None where `layer_rope_theta` is 0: no positions.

    Layers of the same theta have the same object. Without `layer_rope_theta` the tuple is empty.
    """
    if not config.has("layer_rope_theta"):
        return ()
    thetas = config.numbers("layer_rope_theta", config.size("num_hidden_layers"))
    section = rope_section(config).values
    ropes = {
        theta: read_rope(
            config.with_values(rope_parameters=section | {"rope_theta": theta}, rope_scaling=None),
            head_dim,
        )
        for theta in sorted(set(thetas))
        if theta != 0
    }
    return tuple(ropes.get(theta) for theta in thetas)
