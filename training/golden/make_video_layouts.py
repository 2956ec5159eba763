"""Writes tests/prompts/vision/golden_videos.json: which frames of which size transformers shows. See README.md."""

import json
import random
import re
from pathlib import Path
from typing import Any

from transformers.models.qwen2_vl import video_processing_qwen2_vl as qwen2
from transformers.models.qwen3_vl import video_processing_qwen3_vl as qwen3
from transformers.video_utils import VideoMetadata

GOLDEN = Path(__file__).parents[2] / "tests" / "prompts" / "vision" / "golden_videos.json"
RATES = (2, 5, 10, 23.976, 25, 29.97, 30, 60)
SIZES = ((640, 480), (1920, 1080), (360, 640), (64, 48), (20, 17), (1000, 9), (3840, 2160))
SETTINGS: dict[
    str, tuple[str, dict[str, Any]]
] = {  # model_type and video_preprocessor_config.json, as published
    "Qwen2-VL's defaults": ("qwen2_vl", {}),
    "Qwen3-VL's defaults": ("qwen3_vl", {}),
    "Qwen3-VL": (
        "qwen3_vl",
        {
            "video_processor_type": "Qwen3VLVideoProcessor",
            "size": {"shortest_edge": 4096, "longest_edge": 25165824},
            "fps": 2,
            "min_frames": 4,
            "max_frames": 768,
        },
    ),
}


def shown(
    model_type: str, settings: dict[str, Any], film: tuple[int, float, int, int]
) -> dict[str, object]:
    num_frames, rate, width, height = film
    metadata = VideoMetadata(total_num_frames=num_frames, fps=rate)
    own = {key: value for key, value in settings.items() if key != "video_processor_type"}
    if model_type == "qwen2_vl":
        processor = qwen2.Qwen2VLVideoProcessor(**own)
        numbers = processor.sample_frames(metadata, fps=2, max_frames=32).tolist()
        size = qwen2.smart_resize(
            height, width, 28, processor.size["shortest_edge"], processor.size["longest_edge"]
        )
    else:
        processor = qwen3.Qwen3VLVideoProcessor(**{"max_frames": 32, **own})
        processor.max_frames = 32
        numbers = processor.sample_frames(metadata, fps=2).tolist()
        low, high = processor.size["shortest_edge"], processor.size["longest_edge"]
        size = qwen3.smart_resize(len(numbers), height, width, 2, 32, low, high)
    return {"film": [*film], "numbers": numbers, "size": [size[1], size[0]]}


def main() -> None:
    chosen = random.Random(1)
    made: dict[str, object] = {}
    for name, (model_type, settings) in SETTINGS.items():
        films = [
            (chosen.randint(2, 900), chosen.choice(RATES), *chosen.choice(SIZES)) for _ in range(25)
        ]
        cases = [shown(model_type, settings, film) for film in films]
        made[name] = {"model_type": model_type, "settings": settings, "cases": cases}
    text = re.sub(
        r"\[[^\[\]{}]+\]",
        lambda numbers: re.sub(r"\s+", " ", numbers.group()),
        json.dumps(made, indent=1),
    )
    assert json.loads(text) == made
    GOLDEN.write_text(text + "\n")


if __name__ == "__main__":
    main()
