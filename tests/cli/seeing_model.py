"""A random model that sees, with the demo model's tokenizer, to be served: what it says means nothing."""

import json
from pathlib import Path
from shutil import copyfile

from benchmarks.checkpoint import write_checkpoint

DEMO = Path(__file__).parents[2] / "src" / "ouzel" / "demo" / "model"
MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
FIRST_MARK = 2048

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part['type'] == 'text' -%}{{ part['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""

CONFIG = {
    "model_type": "qwen2_vl",
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 2080,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]},
    "tie_word_embeddings": False,
    "eos_token_id": 2041,
    "image_token_id": FIRST_MARK + MARKS.index("<|image_pad|>"),
    "video_token_id": FIRST_MARK + MARKS.index("<|video_pad|>"),
    "vision_start_token_id": FIRST_MARK,
    "vision_end_token_id": FIRST_MARK + 1,
    "vision_config": {
        "depth": 5,
        "embed_dim": 64,
        "hidden_size": 128,
        "num_heads": 2,
        "mlp_ratio": 2,
        "patch_size": 14,
    },
}
PROCESSOR = {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 50176}


def write_seeing_model(directory: Path) -> Path:
    """Returns the directory of the model, which is in this one."""
    source = directory / "source"
    source.mkdir(parents=True)
    for name in ("special_tokens_map.json", "tokenizer_config.json", "generation_config.json"):
        copyfile(DEMO / name, source / name)
    tokenizer = json.loads((DEMO / "tokenizer.json").read_text())
    tokenizer["added_tokens"] += [
        {
            "id": FIRST_MARK + number,
            "content": mark,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, mark in enumerate(MARKS)
    ]
    contents = {"tokenizer.json": tokenizer, "config.json": CONFIG, "preprocessor_config.json": PROCESSOR}
    for name, content in contents.items():
        (source / name).write_text(json.dumps(content))
    (source / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    model = directory / "seeing"
    write_checkpoint(source / "config.json", model, 2**30, {})
    return model
