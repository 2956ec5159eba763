"""The files of a model directory select its image processor, or the directory is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import Normalisation, NumbersPictures
from ouzel.prompts.vision.loader import load_image_processor
from tests.prompts.vision.checkpoints import golden, loaded, write_files
from tests.prompts.vision.normalisation import normalise_tiles
from tests.prompts.vision.pictures import picture


def change_files(family: str, **image_processor: object) -> dict[str, Any]:
    """Returns the files of a family's golden checkpoint with changed settings of its processor."""
    files: dict[str, Any] = golden(family)["files"]
    files["preprocessor_config.json"] |= image_processor
    return files


def refusal(directory: Path, files: dict[str, Any]) -> str:
    with pytest.raises(ModelLoadError) as raised:
        loaded(directory, files)
    return str(raised.value)


@pytest.mark.parametrize("model_type", ["qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"])
def test_later_qwens_are_read_as_qwen3_vl(model_type: str, tmp_path: Path) -> None:
    files = golden("qwen3_vl")["files"]
    files["config.json"]["model_type"] = model_type
    assert loaded(tmp_path, files).layout(640, 480, "auto").position_grid == (1, 15, 20)


def test_text_models_have_no_image_processor(tmp_path: Path) -> None:
    write_files(tmp_path, {"config.json": {"model_type": "qwen2"}})
    assert load_image_processor(tmp_path) is None


def test_text_models_do_without_pillow(tmp_path: Path) -> None:
    write_files(tmp_path, {"config.json": {"model_type": "qwen2"}})
    script = (
        "import sys; from pathlib import Path; from ouzel.prompts.vision.loader import "
        "load_image_processor\n"
        "load_image_processor(Path(sys.argv[1])); print('PIL' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_language_model_taken_out_of_a_vision_model_has_none(tmp_path: Path) -> None:
    files = golden("gemma3")["files"]
    del files["config.json"]["vision_config"]
    write_files(tmp_path, files)
    assert load_image_processor(tmp_path) is None


def test_without_settings_there_is_no_processor(tmp_path: Path) -> None:
    write_files(tmp_path, {"config.json": golden("gemma3")["files"]["config.json"]})
    assert load_image_processor(tmp_path) is None


def test_null_and_missing_settings_have_the_references_values(tmp_path: Path) -> None:
    """The reference's defaults for LLaVA are CLIP's normalisation and 224 pixels."""
    files = change_files(
        "llava", size=None, crop_size=None, image_mean=None, image_std=None, resample=None
    )
    processor = loaded(tmp_path, files)
    assert processor.pieces(picture(300, 200), "auto")[0].shape == (1, 224, 224, 3)
    clip = golden("llava")["files"]["preprocessor_config.json"]
    mean, std = tuple(clip["image_mean"]), tuple(clip["image_std"])
    assert processor.normalisation == Normalisation(1 / 255, mean, std)


def test_the_class_token_is_known_from_the_tower_where_the_processor_does_not_say(
    tmp_path: Path,
) -> None:
    files = golden("llava")["files"]
    files["processor_config.json"] = {}
    assert loaded(tmp_path, files).layout(640, 480, "auto").num_tokens == 576


def test_values_may_be_left_as_they_are(tmp_path: Path) -> None:
    processor = loaded(tmp_path, change_files("llava", do_rescale=False, do_normalize=False))
    tiles = processor.pieces(picture(336, 336), "auto")[0]
    assert np.array_equal(
        normalise_tiles(tiles, processor.normalisation)[0], tiles[0].transpose(2, 0, 1)
    )


def test_low_detail_is_the_first_tile_of_llava_next(tmp_path: Path) -> None:
    processor = loaded(tmp_path, golden("llava_next")["files"])
    image = picture(500, 300)
    low = processor.pieces(image, "low")[0]
    assert np.array_equal(low, processor.pieces(image, "auto")[0][:1])
    assert processor.layout(500, 300, "low").num_tokens == 577


def test_low_detail_is_never_more_than_the_checkpoints_own(tmp_path: Path) -> None:
    processor = loaded(tmp_path, change_files("qwen2_vl", max_pixels=28 * 28 * 9))
    assert (
        processor.layout(1000, 1000, "low").num_tokens
        == processor.layout(1000, 1000, "auto").num_tokens
        == 9
    )


def test_two_tiles_are_a_grid_too(tmp_path: Path) -> None:
    files = change_files("smolvlm", size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    processor = loaded(tmp_path, files)
    assert processor.pieces(picture(100, 50), "auto")[0].shape == (3, 32, 32, 3)
    assert "<row_1_col_2>" in processor.layout(100, 50, "auto").text


def test_mistral_3_merges_patches_where_no_file_says_so(tmp_path: Path) -> None:
    files = golden("mistral3")["files"]
    files["processor_config.json"] = {}
    del files["config.json"]["spatial_merge_size"]
    files["config.json"]["vision_config"]["patch_size"] = 14
    assert loaded(tmp_path, files).layout(280, 140, "auto").num_tokens == 10 * 5


def test_processor_config_decides_whether_minicpmv_numbers_pictures(tmp_path: Path) -> None:
    files = golden("minicpmv4_6")["files"]
    files["processor_config.json"] = {"use_image_id": False}
    processor = loaded(tmp_path, files)
    assert isinstance(processor, NumbersPictures)
    assert processor.number_text(0) == ""


@pytest.mark.parametrize("rate", ["1e-999999999", "4e-1", "0.5", "4/0", "8/4", "0/8", "4/80000"])
def test_granites_rate_is_a_fraction_of_two_short_numbers(rate: str, tmp_path: Path) -> None:
    """An exponent could make a number that no memory holds."""
    files = golden("granite4_vision")["files"]
    files["processor_config.json"]["downsample_rate"] = rate
    assert refusal(tmp_path, files) == (
        f"{tmp_path / 'processor_config.json'}: downsample_rate must be a fraction up to 1, such "
        f'as "4/8", found "{rate}"'
    )


def test_paligemmas_tiles_have_the_encoders_size(tmp_path: Path) -> None:
    files = {
        "config.json": {
            "model_type": "paligemma",
            "vision_config": {"image_size": 224, "patch_size": 14},
        },
        "preprocessor_config.json": {
            "image_processor_type": "SiglipImageProcessor",
            "size": {"height": 448, "width": 448},
        },
    }
    assert "size must be 224x224, the image_size in vision_config, found 448x448" in refusal(
        tmp_path, files
    )


def test_a_square_that_takes_gigabytes_is_refused(tmp_path: Path) -> None:
    processor = loaded(tmp_path, golden("llava_padded")["files"])
    with pytest.raises(ValueError, match="the longer side must be <= 10000 pixels, given 20000"):
        processor.layout(20_000, 100, "auto")


@pytest.mark.parametrize(
    ("family", "changes", "complaint"),
    [
        (
            "llava",
            {"image_processor_type": "ViTImageProcessor"},
            "image_processor_type must be one of CLIPImage",
        ),
        ("llava", {"do_resize": False}, "do_resize must be true, found false"),
        (
            "llava",
            {"size": {"shortest_edge": 100}},
            "crop_size must be <= the shortest_edge 100, found 336x336",
        ),
        (
            "llava",
            {"do_center_crop": False},
            "size must have a shortest_edge, with do_center_crop, or height and",
        ),
        (
            "llava",
            {"size": {"height": 336, "width": 300}},
            "crop_size must equal the fixed size, 336x300",
        ),
        (
            "llava",
            {"size": {"shortest_edge": 336, "longest_edge": 9}},
            "unknown field `longest_edge` - at `$.size`",
        ),
        ("llava", {"resample": 9}, "`int` <= 5 - at `$.resample`"),
        (
            "llava",
            {"image_std": [1.0, 0.0, 1.0]},
            "image_std must be numbers, and image_std without 0",
        ),
        (
            "llava",
            {"image_mean": [float("nan"), 0.0, 1.0]},
            "image_mean and image_std must be numbers",
        ),
        ("llava", {"image_mean": [0.5]}, "Expected `array` of length 3, got 1 - at `$.image_mean`"),
        (
            "qwen2_vl",
            {"patch_size": 16},
            "patch_size must be 14, the value in vision_config, found 16",
        ),
        (
            "qwen2_vl",
            {"merge_size": 4},
            "merge_size must be 2, the value in vision_config, found 4",
        ),
        ("qwen2_vl", {"max_pixels": 10**12}, "at `$.max_pixels`"),
        ("pixtral", {"size": {"height": 300}}, "size must have longest_edge, or height and width"),
        (
            "smolvlm",
            {"max_image_size": {}},
            "missing required field `longest_edge` - at `$.max_image_size`",
        ),
        (
            "smolvlm",
            {"max_image_size": {"longest_edge": 10}},
            "at most 32 times max_image_size, found 2048 and 10",
        ),
        ("gemma3", {"size": {"height": 896}}, "missing required field `width` - at `$.size`"),
        ("internvl", {"max_patches": 0}, "at `$.max_patches`"),
        (
            "lfm2_vl",
            {"encoder_patch_size": 14},
            "encoder_patch_size must be 16, the value in config.json, found 14",
        ),
        ("glm_ocr", {"temporal_patch_size": 1}, "temporal_patch_size must be 2, found 1"),
        ("lfm2_vl", {"tile_size": 500}, "tile_size must be a multiple of 32, found 500"),
        ("lfm2_vl", {"min_tiles": 11}, "min_tiles must be <= max_tiles 10, found 11"),
        (
            "minicpmv",
            {"image_feature_size": 96},
            "image_feature_size must be 64, the value in config.json, found 96",
        ),
        (
            "minicpmv",
            {"patch_size": 16},
            "patch_size must be 14, the value in config.json, found 16",
        ),
        ("minicpmv", {"slice_mode": False}, "at `$.slice_mode`"),
        (
            "minicpmv",
            {"norm_std": [1.0, 0.0, 1.0]},
            "norm_mean and norm_std must be numbers, and norm_std without 0",
        ),
        (
            "minicpmv",
            {"norm_mean": [float("nan"), 0.0, 1.0]},
            "norm_mean and norm_std must be numbers",
        ),
        (
            "minicpmv",
            {"norm_std": [1.0, float("inf"), 1.0]},
            "norm_mean and norm_std must be numbers",
        ),
        ("minicpmv", {"rescale_factor": 0.5}, "rescale_factor must be 1/255, found 0.5"),
        ("minicpmv", {"do_rescale": False}, "at `$.do_rescale`"),
        ("minicpmv", {"do_normalize": False}, "at `$.do_normalize`"),
        (
            "minicpmv4_6",
            {"patch_size": 16},
            "patch_size must be 14, the value in config.json, found 16",
        ),
        (
            "minicpmv4_6",
            {"downsample_mode": "4x"},
            "downsample_mode must be 16x, the value in config.json, found 4x",
        ),
        ("minicpmv4_6", {"downsample_mode": "8x"}, "at `$.downsample_mode`"),
        ("minicpmv4_6", {"max_slice_nums": 257}, "at `$.max_slice_nums`"),
        ("llava_next", {"crop_size": 300}, "size and crop_size must be one square"),
        (
            "llava_next",
            {"image_grid_pinpoints": [[336, 500]]},
            "must be multiples of 336, found 336x500",
        ),
        (
            "llava_onevision",
            {"size": {"height": 384, "width": 336}},
            "size must be a square, found 384x336",
        ),
        ("gemma4", {"max_soft_tokens": 100}, "at `$.max_soft_tokens`"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    family: str, changes: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    message = refusal(tmp_path, change_files(family, **changes))
    assert complaint in message
    assert str(tmp_path / "preprocessor_config.json") in message


def test_a_tower_without_a_patch_size_is_refused(tmp_path: Path) -> None:
    files = golden("llava")["files"]
    files["processor_config.json"] = {}
    del files["config.json"]["vision_config"]["patch_size"]
    assert "config.json: patch_size is missing in vision_config" in refusal(tmp_path, files)


@pytest.mark.parametrize("family", ["llava", "llava_next"])
def test_a_tile_smaller_than_a_patch_is_refused(family: str, tmp_path: Path) -> None:
    files = change_files(family, size={"shortest_edge": 12}, crop_size=12)
    files["preprocessor_config.json"]["image_grid_pinpoints"] = [[24, 24]]
    assert "patch_size must be <= a tile's 12x12, found 14" in refusal(tmp_path, files)


def test_a_list_of_settings_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, golden("gemma3")["files"])
    (tmp_path / "preprocessor_config.json").write_text(json.dumps([1]))
    with pytest.raises(ModelLoadError, match=r"preprocessor_config\.json must hold a JSON object"):
        load_image_processor(tmp_path)
