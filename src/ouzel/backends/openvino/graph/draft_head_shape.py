"""Reads the sizes and switches of an EAGLE-3 head from its config.json.

Sources: SafeAILab's EAGLE (cnets.py); SpecForge, ModelOpt and speculators, programs for training
heads; SGLang and vLLM (llama_eagle3.py).

The head reads rows of some layers of the model. Programs count these layers differently. The key
`eagle_aux_hidden_state_layer_ids` in `eagle_config` has the layers whose output is read, as
SpecForge and ModelOpt train heads and SGLang serves them. The same key on the first level has the
layers whose input is read, as speculators trains heads and vLLM serves them. Without the key all
of them read the inputs of the layers 2, n / 2 and n - 3 of n.
"""

from dataclasses import dataclass, replace

from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.backends.openvino.graph.self_attention import AttentionShape
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

_CLASSES = (
    *("LlamaForCausalLM", "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "Eagle3LlamaModel"),
    *("Eagle3Qwen3ForCausalLM", "Eagle3Speculator", "Eagle3DraftModel"),
)
_LAYERS = "eagle_aux_hidden_state_layer_ids"
# values of transformers' LlamaConfig
_DEFAULTS = {"rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "num_hidden_layers": 1}


@dataclass(frozen=True, kw_only=True)
class DraftHeadShape:
    """The sizes and switches of one head, and of the model that it drafts for."""

    # Layers of the model whose inputs the head reads; the number of layers stands for the rows
    # after the last one.
    layers: tuple[int, ...]
    num_layers: int  # layers of the model; the head's cache has the next number
    model_size: int  # columns of the model's rows
    vocab_size: int  # the model's
    draft_vocab_size: int  # tokens that the head can propose
    attention: AttentionShape
    mlp: MlpShape
    norm: Norm
    rope: Rope
    norms_joined_rows: bool = False  # one norm of the rows of all layers, before they are projected
    norms_rows_of_layers: bool = False  # a norm for the rows of each layer
    norms_residual: bool = False  # the residual of the layer is the row after its norm
    chains_normed_rows: bool = False  # a further entry takes the row after the final norm
    logits_factor: float = 1.0

    @property
    def reads_last_rows(self) -> bool:
        return self.num_layers in self.layers

    @property
    def hidden_size(self) -> int:
        return self.attention.hidden_size


def read_draft_head_shape(config: HfConfig, model: HfConfig) -> DraftHeadShape:
    """Reads the shape of a head; `model` is the config of the language model that it drafts for.

    Raises ModelLoadError if the head is of another kind, or of another model.
    """
    refuse_others(config)
    config = config.with_defaults(**_DEFAULTS)
    norm = Norm(config.number("rms_norm_eps"))
    attention = AttentionShape.read(config, norm)
    has_bias = config.flag("attention_bias", False)
    num_layers, vocab_size = model.size("num_hidden_layers"), config.size("vocab_size")
    shape = DraftHeadShape(
        layers=read_layers(config, num_layers),
        num_layers=num_layers,
        model_size=config.size("target_hidden_size", attention.hidden_size),
        vocab_size=vocab_size,
        draft_vocab_size=config.size("draft_vocab_size", vocab_size),
        attention=replace(
            attention,
            input_size=2 * attention.hidden_size,
            qkv_bias=config.flag("qkv_bias", has_bias),
            output_bias=has_bias,
        ),
        mlp=replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False)),
        norm=norm,
        rope=read_rope(config, attention.head_dim),
        norms_joined_rows=read_switch(config, "norm_before_fc"),
        norms_rows_of_layers=read_switch(config, "fc_norm"),
        norms_residual=read_switch(config, "norm_before_residual"),
        chains_normed_rows=read_switch(config, "norm_output"),
        logits_factor=config.number("logit_scale", 1.0),
    )
    for key, found, required in (
        ("target_hidden_size", shape.model_size, model.size("hidden_size")),
        ("vocab_size", vocab_size, model.size("vocab_size")),
    ):
        if found != required:
            raise config.refuse_value(key, f"{required} as in the model", found)
    if shape.draft_vocab_size > vocab_size:
        raise config.refuse_value("draft_vocab_size", f"<= {vocab_size}", shape.draft_vocab_size)
    return shape


def refuse_others(config: HfConfig) -> None:
    """Raises ModelLoadError for a head of another kind."""
    names = {name.lower() for name in _CLASSES}
    for name in config.values.get("architectures") or ():
        if str(name).lower() not in names:
            raise config.refuse_value("architectures", f"one of {', '.join(_CLASSES)}", name)
    if (number := config.integer("num_hidden_layers", 1)) != 1:
        raise config.refuse_value("num_hidden_layers", "1 for an EAGLE-3 head", number)
    section = config.section("eagle_config") or HfConfig({})
    config.require(tie_word_embeddings=False, parallel_drafting=False)
    section.require(use_aux_hidden_state=True, parallel_draft_step=1)
    # without these two keys `sliding_window` has no effect in any of the sources
    config.require(use_sliding_window=False)
    for kind in config.values.get("layer_types") or ():
        if kind != "full_attention":
            raise config.refuse_value("layer_types", "full_attention", kind)


def read_switch(config: HfConfig, key: str) -> bool:
    """Reads a switch, which ModelOpt writes into `eagle_config`."""
    section = config.section("eagle_config") or HfConfig({})
    return config.flag(key, section.flag(key, False))


def read_layers(config: HfConfig, num_layers: int) -> tuple[int, ...]:
    """Returns the layers whose inputs the head reads, in the order of the head."""
    section = config.section("eagle_config") or HfConfig({})
    if config.has(_LAYERS):
        layers = config.integers(_LAYERS)
    elif section.has(_LAYERS):
        layers = [layer + 1 for layer in section.integers(_LAYERS)]
    else:
        layers = [2, num_layers // 2, num_layers - 3]
    if not layers or not all(0 <= layer <= num_layers for layer in layers):
        raise ModelLoadError(
            f"{config.source}: {_LAYERS} must name some of the {num_layers} layers of the "
            f"model, found the inputs of {layers}"
        )
    return tuple(layers)
