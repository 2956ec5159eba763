"""Makes model directories of golden GGUF files with their mmproj files.

training/golden/convert_seeing.py wrote the files with llama.cpp's converters.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.model_directory import model_directory

GOLDEN = Path(__file__).parent / "golden_seeing"
NAMES = sorted(path.name for path in GOLDEN.iterdir())

# Settings in llama.cpp's code. Golden checkpoints have other values than published models.
NOT_IN_A_FILE: dict[str, JsonObject] = {
    "gemma3": {
        "text_config": {
            "query_pre_attn_scalar": 32,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        }
    },
    "mistral3": {"vision_feature_layer": -2},
    "pixtral": {"vision_feature_layer": [-1, 2]},
    "qwen2_5_vl": {"vision_config": {"window_size": 16}},
}


def find_files(name: str) -> tuple[Path, Path]:
    """Returns the file of the language model, and the mmproj file."""
    [projector] = (GOLDEN / name).glob("mmproj-*.gguf")
    [model] = (GOLDEN / name).glob(f"{name}-*.gguf")
    return model, projector


def write_directory(name: str, cache: Path, more: Mapping[str, object] | None = None) -> Path:
    """Makes the model directory, and writes the settings that are not in the files.

    `more` are further keys of config.json.
    """
    directory = model_directory(GOLDEN / name, cache)
    path = directory / "config.json"
    config = json.loads(path.read_text())
    for keys in (NOT_IN_A_FILE.get(name, {}), more or {}):
        config = merge(config, keys)
    path.write_text(json.dumps(config))
    return directory


def merge(values: JsonObject, others: Mapping[str, object]) -> JsonObject:
    """Returns the values with the others; objects within are merged, too."""
    merged = dict(values)
    for key, other in others.items():
        own = merged.get(key)
        merged[key] = (
            merge(own, other) if isinstance(own, dict) and isinstance(other, dict) else other
        )
    return merged
