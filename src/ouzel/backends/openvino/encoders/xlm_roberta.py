"""XLM-RoBERTa (bge-m3, multilingual e5, bge-reranker) is RoBERTa for many languages.

jina-embeddings-v3 has the same type with rotary positions.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.encoders import jina_embeddings_v3, roberta
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    if config.text("position_embedding_type", "absolute") == "rotary":
        return jina_embeddings_v3.build(config, weights, plan, num_labels)
    return roberta.build(config, weights, plan, num_labels)
