"""jina-embeddings-v3: XLM-RoBERTa with rotary positions, and with adapters for tasks.

References: transformers, models/jina_embeddings_v3/modeling_jina_embeddings_v3.py; the older
checkpoint has the type xlm-roberta, other names, and adapters: jinaai/xlm-roberta-flash-
implementation, modeling_lora.py.
"""

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import read_activation
from ouzel.backends.openvino.graph.bert import BertShape, LayerNames, build_layers
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import read_rope
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.text_tasks import read_text_tasks
from ouzel.config.weights import WeightPlan

_NAMES = LayerNames(
    layer="layers.{}.",
    projections=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    mixed="self_attn.o_proj",
    mixed_norm="post_attention_layernorm",
    inner=("mlp.fc1",),
    outer="mlp.fc2",
    outer_norm="post_mlp_layernorm",
)
_OLDER_NAMES = LayerNames(
    layer="encoder.layers.{}.",
    projections=("mixer.Wqkv",),
    mixed="mixer.out_proj",
    mixed_norm="norm1",
    inner=("mlp.fc1",),
    outer="mlp.fc2",
    outer_norm="norm2",
)


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(
        rope_theta=config.number("rotary_emb_base", 20_000.0),
        type_vocab_size=1,
        max_position_embeddings=8194,
    )
    size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
    if size % num_heads:
        raise config.refuse("num_attention_heads", f"a divisor of hidden_size, {size}")
    norm = Norm(config.number("layer_norm_eps", 1e-5), is_centred=True, has_bias=True)
    rope = read_rope(config, size // num_heads)
    names = ("embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight", "emb_ln.weight")
    prefix = "roberta." if any(weights.has(f"roberta.{name}") for name in names) else ""
    b = EncoderBuilder(weights, plan, prefix)
    if tasks := read_text_tasks(config.values):
        rank = config.size("lora_rank", 4)
        b.add_tasks(len(tasks), rank, config.number("lora_alpha", 1) / rank)
    is_older = b.has("emb_ln.weight")
    rows = b.embed("embeddings.word_embeddings", config.size("vocab_size"), size, b.token_ids)
    types = b.input("token_types", [-1], ov.Type.i64)
    num_types = config.size("type_vocab_size")
    rows = ops.add(rows, b.embed("embeddings.token_type_embeddings", num_types, size, types))
    rows = b.norm(rows, "emb_ln" if is_older else "embeddings.LayerNorm", size, norm)
    shape = BertShape(
        hidden_size=size,
        num_heads=num_heads,
        inner_size=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        norm=norm,
        activation=read_activation(config, default="gelu"),
    )
    layer_names = _OLDER_NAMES if is_older else _NAMES
    rows = build_layers(b, rows, shape, names=layer_names, angles=b.angles(rope))
    if num_labels:
        head = b.without_prefix()
        first = ops.tanh(head.linear(b.pooled(rows), "classifier.dense", size, size))
        rows = head.linear(first, "classifier.out_proj", size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=rope.max_positions,
        num_labels=num_labels,
        left_out=("lm_head.", "pooler.", "roberta.pooler."),
    )
