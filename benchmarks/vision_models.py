"""Writes the models of benchmarks/vision.py: a random checkpoint of LLaVA's shape, and its IR.

usage: uv run --group bench python -m benchmarks.vision_models OUT_DIR --exporter PATH [--tiny]

PATH is `optimum-cli` of an environment with optimum-intel and nncf (training/golden/README.md,
"Checkpoints that see"). The encoder is CLIP ViT-L/14-336, without its last layer; the language
model is a llama of Qwen3-0.6B's sizes with a vocabulary of 32,000. OUT_DIR/checkpoint is for Ouzel,
in bf16. OUT_DIR/ir has the language model in int8 as Ouzel serves it (symmetric, rows), and the
encoder in f16, which runs in bf16 as Ouzel's does. --tiny writes small models for a try.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.checkpoint import write_checkpoint
from ouzel.demo import MODEL_DIRECTORY

VOCAB_SIZE = 32_000
IMAGE, END = "<image>", "<|im_end|>"
ENCODER = "openvino_vision_embeddings_model"
TEMPLATE = """\
{%- for message in messages -%}
{{ message.role | upper }}: {% if message.content is string %}{{ message.content }}{% else -%}
{%- for part in message.content %}{% if part.type == 'image' %}<image>\n{% endif %}{% endfor -%}
{%- for part in message.content -%}
{%- if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor -%}
{%- endif %}\n
{%- endfor -%}
{% if add_generation_prompt %}ASSISTANT:{% endif %}"""
TEXT = {
    "model_type": "llama",
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": False,
}
VISION = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projection_dim": 768,
}
TINY = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}
TINY_TEXT = TEXT | TINY | {"num_key_value_heads": 2, "head_dim": 32}


def write_tokenizer(path: Path) -> dict[str, int]:
    """Writes the demo model's tokenizer with IMAGE and filler words, and returns all ids.

    The filler words are only ever decoded.
    """
    tokenizer = json.loads((MODEL_DIRECTORY / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    vocabulary |= {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    image = tokenizer["added_tokens"][0] | {"content": IMAGE, "id": len(vocabulary)}
    tokenizer["added_tokens"].append(image)
    vocabulary[IMAGE] = image["id"]
    vocabulary |= {f"word{token_id}": token_id for token_id in range(len(vocabulary), VOCAB_SIZE)}
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return vocabulary


def write_files(out: Path, *, is_tiny: bool) -> None:
    """Writes all files but the weights."""
    token_ids = write_tokenizer(out / "tokenizer.json")
    text, vision = (TINY_TEXT, VISION | TINY) if is_tiny else (TEXT, VISION)
    end = token_ids[END]
    crop = {"height": vision["image_size"], "width": vision["image_size"]}
    files = {
        "config": {
            "architectures": ["LlavaForConditionalGeneration"],
            "model_type": "llava",
            "image_token_index": token_ids[IMAGE],
            "projector_hidden_act": "gelu",
            "vision_feature_layer": -2,
            "vision_feature_select_strategy": "default",
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "text_config": text,
            "vision_config": vision,
        },
        "generation_config": {"eos_token_id": end, "pad_token_id": end},
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": END,
        },
        "preprocessor_config": {
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": vision["image_size"]},
            "crop_size": crop,
            "patch_size": vision["patch_size"],
        },
        "processor_config": {
            "processor_class": "LlavaProcessor",
            "image_token": IMAGE,
            "patch_size": vision["patch_size"],
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
    }
    (out / "chat_template.jinja").write_text(TEMPLATE)
    for name, content in files.items():
        (out / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


def rename_as_published(name: str) -> str:
    """Returns the tensor's name in checkpoints of LLaVA 1.5."""
    if name.startswith("vision_tower."):
        return name.replace("vision_tower.", "vision_tower.vision_model.", 1)
    return name if name.startswith("multi_modal_projector.") else f"language_model.{name}"


def export(exporter: Path, checkpoint: Path, out: Path) -> None:
    """Exports the checkpoint as IR. Raises CalledProcessError if the exporter fails."""

    def run(directory: Path, *options: str) -> None:
        words = [
            str(exporter),
            "export",
            "openvino",
            "--model",
            str(checkpoint),
            "--task",
            "image-text-to-text",
        ]
        subprocess.run([*words, "--weight-format", *options, str(directory)], check=True)

    run(out, "int8", "--sym")
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        run(Path(scratch), "fp16")
        for ending in (".xml", ".bin"):
            shutil.move(Path(scratch) / f"{ENCODER}{ending}", out / f"{ENCODER}{ending}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--exporter", type=Path, required=True)
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    checkpoint, ir = arguments.out / "checkpoint", arguments.out / "ir"
    with tempfile.TemporaryDirectory() as files:
        write_files(Path(files), is_tiny=arguments.tiny)
        count = write_checkpoint(
            Path(files) / "config.json", checkpoint, 2**30, {}, rename_as_published
        )
    print(f"{checkpoint}: {count / 1e9:.2f} billion parameters", flush=True)
    export(arguments.exporter, checkpoint, ir)


if __name__ == "__main__":
    main()
