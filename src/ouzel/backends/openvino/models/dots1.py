"""dots.llm1 has the attention of qwen3, and DeepSeek's experts behind the first layers.

Reference: transformers, models/dots1/modeling_dots1.py and configuration_dots1.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import build_decoder
from ouzel.backends.openvino.graph.deepseek import feed_forward, first_layers, sigmoid_routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import qwen3
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "num_key_value_heads": 32,
    "first_k_dense_replace": 0,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "max_position_embeddings": 2048,
    "max_window_layers": 62,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    # Transformers ignores `use_sliding_window` here; a null window is off.
    config = config.with_defaults(**DEFAULTS).with_values(use_sliding_window=True)
    # Published files have the name of the method in place of the function: it implies sigmoids.
    if config.values.get("scoring_func") == "noaux_tc":
        config = config.with_values(scoring_func="sigmoid")
    routing = sigmoid_routing(config)
    return build_decoder(
        b, qwen3.decoder_shape(config), feed_forward(config, routing, first_layers(config))
    )
