"""Videos show the frames that transformers chooses, at the same size.

The golden layouts are made by training/golden/make_video_layouts.py.
"""

import json
from pathlib import Path

import pytest

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.loader import load_video_processor
from ouzel.prompts.vision.video import Clip, VideoProcessor
from tests.prompts.vision.checkpoints import write_files

GOLDEN = json.loads((Path(__file__).parent / "golden_videos.json").read_text())


def processor(
    directory: Path, model_type: str, settings: dict[str, object]
) -> VideoProcessor | None:
    vision = {"patch_size": 14 if model_type == "qwen2_vl" else 16}
    write_files(
        directory,
        {
            "config.json": {"model_type": model_type, "vision_config": vision},
            "preprocessor_config.json": {**vision, "min_pixels": 3136, "max_pixels": 12845056},
            "video_preprocessor_config.json": settings,
        },
    )
    return load_video_processor(directory)


@pytest.mark.parametrize("name", GOLDEN)
def test_frames_are_sampled_and_sized_as_transformers_does(name: str, tmp_path: Path) -> None:
    golden = GOLDEN[name]
    videos = processor(tmp_path, golden["model_type"], golden["settings"])
    assert videos is not None

    for case in golden["cases"]:
        num_frames, rate, width, height = case["film"]
        numbers = list(videos.sampled(num_frames, rate, fps=None, max_frames=32))
        assert numbers == case["numbers"], case
        clip = Clip(
            width, height, [number / rate for number in numbers], len(numbers) / num_frames * rate
        )
        assert [*videos.layout(clip).size] == case["size"], case


@pytest.mark.parametrize("model_type", ["qwen2_vl", "qwen3_vl"])
def test_a_single_frame_is_shown(model_type: str, tmp_path: Path) -> None:
    videos = processor(tmp_path, model_type, {})
    assert videos is not None

    assert list(videos.sampled(1, 10.0, fps=None, max_frames=32)) == [0]
    layout = videos.layout(Clip(640, 480, [0.0], 2.0))
    assert len(layout.groups) == 1
    assert layout.text.count(videos.feature_token) == layout.num_tokens


def test_other_families_have_none(tmp_path: Path) -> None:
    assert processor(tmp_path, "llava", {}) is None


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"temporal_patch_size": 4}, "temporal_patch_size must be 2, found 4"),
        (
            {"video_processor_type": "Other"},
            "video_processor_type must be one of Qwen2VLVideoProcessor",
        ),
        (
            {"patch_size": 14},
            "video_preprocessor_config.json: patch_size must be 16, the value in vision_config",
        ),
        ({"fps": 0}, "fps"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    settings: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=complaint):
        processor(tmp_path, "qwen3_vl", settings)
