"""The sizes of the network, and the names that a published Qwen3-VL has for them in its config.json."""

from dataclasses import dataclass, fields

PATCH = 8
MERGE = 2
TOKEN_SIDE = PATCH * MERGE  # in pixels
MIN_PIXELS, MAX_PIXELS = 80 * 80, 96 * 96  # of a picture: 25 to 36 tokens
CONTEXT = 2048

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class VisionSizes:
    hidden_size: int = 192
    intermediate_size: int = 512
    depth: int = 4
    num_heads: int = 6
    positions_side: int = 12  # of the square of learned positions

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads


@dataclass(frozen=True, slots=True)
class TextSizes:
    vocab_size: int
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 4
    num_attention_heads: int = 6
    num_key_value_heads: int = 3
    head_dim: int = 32
    mrope_section: tuple[int, int, int] = (
        6,
        5,
        5,
    )  # of the head_dim / 2 frequencies: time, row, column
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6


@dataclass(frozen=True, slots=True)
class Sizes:
    vision: VisionSizes
    text: TextSizes


def config_of(sizes: Sizes, token_ids: dict[str, int]) -> Json:
    """Returns config.json; `token_ids` are of the special tokens by their texts."""
    vision, text = sizes.vision, sizes.text
    end = token_ids["<|im_end|>"]
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "dtype": "bfloat16",
        "eos_token_id": end,
        "image_token_id": token_ids["<|image_pad|>"],
        "model_type": "qwen3_vl",
        "pad_token_id": token_ids["<|endoftext|>"],
        "text_config": {
            "attention_bias": False,
            "attention_dropout": 0.0,
            "dtype": "bfloat16",
            "eos_token_id": end,
            "head_dim": text.head_dim,
            "hidden_act": "silu",
            "hidden_size": text.hidden_size,
            "initializer_range": 0.02,
            "intermediate_size": text.intermediate_size,
            "max_position_embeddings": CONTEXT,
            "model_type": "qwen3_vl_text",
            "num_attention_heads": text.num_attention_heads,
            "num_hidden_layers": text.num_hidden_layers,
            "num_key_value_heads": text.num_key_value_heads,
            "pad_token_id": token_ids["<|endoftext|>"],
            "rms_norm_eps": text.rms_norm_eps,
            "rope_scaling": {
                "mrope_interleaved": True,
                "mrope_section": [*text.mrope_section],
                "rope_type": "default",
            },
            "rope_theta": text.rope_theta,
            "tie_word_embeddings": True,
            "use_cache": True,
            "vocab_size": text.vocab_size,
        },
        "tie_word_embeddings": True,
        "video_token_id": token_ids["<|video_pad|>"],
        "vision_config": {
            "deepstack_visual_indexes": [],
            "depth": vision.depth,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": vision.hidden_size,
            "in_channels": 3,
            "initializer_range": 0.02,
            "intermediate_size": vision.intermediate_size,
            "model_type": "qwen3_vl",
            "num_heads": vision.num_heads,
            "num_position_embeddings": vision.positions_side**2,
            "out_hidden_size": text.hidden_size,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
        },
        "vision_end_token_id": token_ids["<|vision_end|>"],
        "vision_start_token_id": token_ids["<|vision_start|>"],
    }


def sizes_of(config: Json) -> Sizes:
    """Reads back what `config_of` wrote."""
    vision, text = config["vision_config"], config["text_config"]
    assert isinstance(vision, dict) and isinstance(text, dict)
    vision_names = [each.name for each in fields(VisionSizes) if each.name != "positions_side"]
    text_names = [each.name for each in fields(TextSizes) if each.name != "mrope_section"]
    return Sizes(
        VisionSizes(
            **{name: vision[name] for name in vision_names},
            positions_side=round(vision["num_position_embeddings"] ** 0.5),
        ),
        TextSizes(
            **{name: text[name] for name in text_names},
            mrope_section=tuple(text["rope_scaling"]["mrope_section"]),
        ),
    )


def processor_config() -> Json:
    """Returns preprocessor_config.json."""
    return {
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_processor_type": "Qwen2VLImageProcessor",
        "image_std": [0.5, 0.5, 0.5],
        "merge_size": MERGE,
        "patch_size": PATCH,
        "processor_class": "Qwen3VLProcessor",
        "resample": 3,
        "rescale_factor": 1 / 255,
        "size": {"longest_edge": MAX_PIXELS, "shortest_edge": MIN_PIXELS},
        "temporal_patch_size": 2,
    }
