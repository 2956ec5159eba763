"""Writes tests/prompts/vision/golden/: what transformers makes of pictures and of prompts with them. See README.md."""

import hashlib
import importlib
import json
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.prompts.vision.pictures import picture, sample_positions
from training.golden import minicpmv
from training.golden.processor_families import FAMILIES, Family, Json

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "prompts" / "vision" / "golden"
SIZES = [
    (640, 480),
    (333, 500),
    (1023, 341),
    (300, 300),
    (7, 11),
    (911, 37),
    (60, 1500),
    (1600, 1200),
    (199, 1),
]
LOW_SIZES = [(640, 480), (60, 1500), (1600, 1200)]
# Of these only the tokens are counted. Some are where a float, a tie or a limit decides; the others are random.
_ROUNDED = [(55, 88), (352, 110), (656, 205)]
_TIES = [
    (600, 600),
    (640, 640),
    (1000, 1000),
    (1200, 600),
    (900, 450),
    (500, 400),
    (1000, 800),
    (1900, 760),
    (1, 150),
]
SPECIAL_TOKENS = [
    *(
        "<|endoftext|>",
        "<|vision_start|>",
        "<|image_pad|>",
        "<|vision_end|>",
        "<|video_pad|>",
        "<image>",
        "<video>",
    ),
    *(
        "[IMG]",
        "[IMG_BREAK]",
        "[IMG_END]",
        "<start_of_image>",
        "<image_soft_token>",
        "<end_of_image>",
    ),
    *("<|image>", "<|image|>", "<image|>", "<|video|>", "<|audio>", "<|audio|>", "<audio|>"),
    *("<img>", "</img>", "<IMG_CONTEXT>"),
    *("<fake_token_around_image>", "<global-img>", "<end_of_utterance>"),
    *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
]


class Stub:
    """Stands for the part of a processor that prepares videos or sounds, which needs torchvision or is not asked."""

    unused_input_names = model_input_names = ()
    slice_mode, downsample_mode = True, "16x"


def write_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    # So that a line break joins the next one, as in the checkpoints' tokenizers: texts must be joined before encoding.
    lines_and_words = pre_tokenizers.Split(Regex(r"\n+| ?[^\s]+|\s"), "isolated")
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([lines_and_words, in_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL_TOKENS, initial_alphabet=alphabet
    )
    tokenizer.train_from_iterator(
        [(ROOT / "docs" / "reference" / "responses.md").read_text()], trainer
    )
    tokenizer.save(str(path), pretty=False)


def processor_of(family: Family) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        write_tokenizer_files(Path(directory), family)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
    if family.name == "minicpmv":
        return minicpmv.Processor(tokenizer, family.image_processor)
    return assembled(family.processor_class, tokenizer, family.image_processor, family.processor)


def assembled(
    processor_class_path: str, tokenizer: Any, image_processor: Json, settings: Json
) -> Any:
    """Builds the processor by hand, for AutoProcessor wants torchvision for the video processors of most."""
    folder, name = processor_class_path.split(".")
    if (
        folder == "pixtral"
    ):  # its module wants this one of torchvision's, for a function that the other has too
        pil_module = importlib.import_module(
            "transformers.models.pixtral.image_processing_pil_pixtral"
        )
        sys.modules["transformers.models.pixtral.image_processing_pixtral"] = pil_module
    module = importlib.import_module(f"transformers.models.{folder}.processing_{folder}")
    if folder == "smolvlm":
        module.num2words = str  # which writes out the times of videos
    processor_class = getattr(module, name)
    processor_class.check_argument_for_proper_class = lambda *_: None
    declared = image_processor["image_processor_type"].removesuffix("Fast").removesuffix("Pil")
    parts = dict.fromkeys(processor_class.get_attributes(), Stub())
    parts["tokenizer"] = tokenizer
    parts["image_processor"] = image_processor_class(declared).from_dict(image_processor)
    return processor_class(**parts, **settings)


def image_processor_class(name: str) -> Any:
    """Returns Pillow's class. A family that has torchvision's only gets Pillow's resizing."""
    pillow = getattr(transformers, name + "Pil", None)
    if pillow is not None:
        return pillow
    backends = importlib.import_module("transformers.image_processing_backends")
    backends.TorchvisionBackend.resize = resized_by_pillow
    return getattr(transformers, name)


def resized_by_pillow(self: Any, image: Any, size: Any, resample: Any = None, **_: object) -> Any:
    """Resizes uint8 [pictures, 3, height, width]."""
    pictures = [Image.fromarray(each.permute(1, 2, 0).numpy()) for each in image]
    new = [each.resize((size.width, size.height), Image.Resampling(resample)) for each in pictures]
    return torch.stack([torch.tensor(np.asarray(each)).permute(2, 0, 1) for each in new])


def write_tokenizer_files(directory: Path, family: Family) -> None:
    (directory / "tokenizer.json").write_bytes((GOLDEN / "tokenizer.json").read_bytes())
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": family.tokens}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))


def process(
    family: Family, processor: Any, image: Any, detail: str, **more: Any
) -> tuple[Any, list[str]]:
    """Returns the outputs of the image processor, and what stands in the prompt for each picture."""
    settings = family.auto if detail == "auto" else (family.low or {})
    merged = processor._merge_kwargs(images_kwargs={**settings, **more})["images_kwargs"]
    images: Any = [image]
    if detail == "low" and family.name == "llava_onevision":  # each of several pictures
        images = [[image, image]]
    elif family.name in ("smolvlm", "idefics3", "lfm2_vl"):
        images = [[image]]
    if family.name == "lfm2_vl":
        merged["use_image_special_tokens"] = True
    return processor._process_images(images, **{**merged, "return_tensors": None})


def feature_token_of(family: Family) -> str:
    return family.tokens.get("image_token", family.placeholder)


def case_of(family: Family, processor: Any, size: tuple[int, int], detail: str) -> Json:
    outputs, texts = process(family, processor, picture(*size), detail)
    feature_token = feature_token_of(family)
    case = {
        "size": list(size),
        "detail": detail,
        "text": re.sub(
            f"(?:{re.escape(feature_token)})+", lambda run: shortened(run, feature_token), texts[0]
        ),
        "num_tokens": texts[0].count(feature_token),
    }
    if family.in_pieces:
        case["pieces"] = [
            {"num_tokens": count, **facts_about(pixels, processor.image_processor)}
            for pixels, count in pieces_of(
                outputs, processor.image_processor, getattr(processor, "num_features", None)
            )
        ]
    else:
        pixels = pixels_of(outputs, processor.image_processor)
        case |= facts_about(pixels, processor.image_processor)
    if "image_grid_thw" in outputs:
        merge_size = processor.image_processor.merge_size
        time, height, width = (int(length) for length in outputs["image_grid_thw"][0])
        case["position_grid"] = [time, height // merge_size, width // merge_size]
    return case


def facts_about(pixels: np.ndarray[Any, Any], image_processor: Any) -> Json:
    values = bytes_of(pixels, image_processor)
    pixels = normalised(values, image_processor)
    return {
        "shape": list(pixels.shape),
        "sum": float(pixels.astype(np.float64).sum()),
        "samples": [
            float(f"{value:.8g}") for value in pixels.ravel()[sample_positions(pixels.size)]
        ],
        "digest": hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest(),
    }


def counted_sizes() -> list[tuple[int, int]]:
    generator = random.Random(0)
    drawn = [
        (int(2 ** generator.uniform(0, 11.3)), int(2 ** generator.uniform(0, 11.3)))
        for _ in range(100)
    ]
    return [*_TIES, *_ROUNDED, *(size for size in drawn if max(size) <= 200 * min(size))]


def count_of(family: Family, processor: Any, size: tuple[int, int], detail: str) -> list[int]:
    """Returns width, height and number of tokens; the pixels are black and are not worked on."""
    quick = {"resample": 0, "do_rescale": False, "do_normalize": False}
    _, texts = process(family, processor, Image.new("RGB", size), detail, **quick)
    return [*size, texts[0].count(feature_token_of(family))]


def shortened(run: re.Match[str], token: str) -> str:
    return f"{token}*{len(run.group()) // len(token)}"


def pixels_of(outputs: Any, image_processor: Any) -> np.ndarray[Any, Any]:
    """Returns the first picture's pixels as [tiles, 3, height, width], whatever the model reads."""
    values = outputs["pixel_values"]
    if "image_grid_thw" in outputs:
        _, rows, columns = outputs["image_grid_thw"][0]
        side, merge = image_processor.patch_size, image_processor.merge_size
        if np.ndim(values) == 4:  # patches row by row
            cut = np.asarray(values).reshape(rows, columns, 3, side, side)
            return cut.transpose(2, 0, 3, 1, 4).reshape(1, 3, rows * side, columns * side)
        blocks = np.asarray(values).reshape(
            rows // merge, columns // merge, merge, merge, 3, -1, side, side
        )[..., 0, :, :]
        return blocks.transpose(4, 0, 2, 5, 1, 3, 6).reshape(1, 3, rows * side, columns * side)
    if "image_position_ids" in outputs:
        positions, side = np.asarray(outputs["image_position_ids"][0]), image_processor.patch_size
        columns, rows = positions.max(axis=0) + 1
        patches = np.asarray(values[0])[: rows * columns].reshape(rows, columns, side, side, 3)
        return patches.transpose(4, 0, 2, 1, 3).reshape(1, 3, rows * side, columns * side)
    pixels = np.asarray(values[0] if np.ndim(values[0]) == 4 else values)
    return pixels if pixels.ndim == 4 else pixels[0]


def pieces_of(
    outputs: Any, image_processor: Any, num_tokens: int | None
) -> list[tuple[np.ndarray[Any, Any], int]]:
    """Returns the pixels and the number of tokens of each piece of the first picture.

    `num_tokens` is of each tile, None if it follows from the tile's size.
    """
    if "target_sizes" in outputs:
        return packed_pieces(outputs, image_processor, num_tokens)
    side, merge = image_processor.encoder_patch_size, image_processor.downsample_factor
    shapes = np.asarray(outputs["spatial_shapes"]).tolist()
    num_tiles = outputs["image_rows"][0] * outputs["image_cols"][0]
    pieces = []
    for begin, end in ((0, num_tiles), (num_tiles, len(shapes))):
        if begin == end:
            continue
        rows, columns = shapes[begin]
        flat = np.asarray(outputs["pixel_values"])[begin:end, : rows * columns]
        cut = flat.reshape(end - begin, rows, columns, side, side, 3)
        pixels = cut.transpose(0, 5, 1, 3, 2, 4).reshape(
            end - begin, 3, rows * side, columns * side
        )
        pieces.append((pixels, (end - begin) * (rows // merge) * (columns // merge)))
    return pieces


def packed_pieces(
    outputs: Any, image_processor: Any, num_tokens: int | None
) -> list[tuple[np.ndarray[Any, Any], int]]:
    """Returns the pieces for MiniCPM-V: the whole picture, and its slices."""
    merge = 2 if image_processor.downsample_mode == "4x" else 4
    tiles = [each.numpy() for each in minicpmv.tiles_of(outputs, image_processor.patch_size)]
    shapes = np.asarray(outputs["target_sizes"]).tolist()
    counts = [num_tokens or rows * columns // merge**2 for rows, columns in shapes]
    pieces = [(np.stack(tiles[:1]), counts[0])]
    return [*pieces, (np.stack(tiles[1:]), sum(counts[1:]))] if tiles[1:] else pieces


def bytes_of(pixels: np.ndarray[Any, Any], image_processor: Any) -> np.ndarray[Any, Any]:
    """Returns the bytes [tiles, height, width, 3] of which the pixels were made, and proves that they were."""
    mean, std = normalisation_of(image_processor)
    last = pixels.transpose(0, 2, 3, 1)
    values = np.rint(
        (last.astype(np.float64) * std + mean) / image_processor.rescale_factor
    ).astype(np.uint8)
    # torchvision's order of operations differs from Pillow's classes
    assert np.allclose(normalised(values, image_processor), pixels, rtol=0, atol=1e-6)
    return values


def normalised(values: np.ndarray[Any, Any], image_processor: Any) -> np.ndarray[Any, Any]:
    mean, std = normalisation_of(image_processor)
    scaled = (values * image_processor.rescale_factor).astype(np.float32)
    return ((scaled - mean) / std).transpose(0, 3, 1, 2)


def normalisation_of(image_processor: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if not image_processor.do_normalize:
        return np.zeros(3, np.float32), np.ones(3, np.float32)
    return np.float32(image_processor.image_mean), np.float32(image_processor.image_std)


def prompt_of(family: Family, processor: Any, num_pictures: int) -> Json:
    sizes = [(31 + 40 * index, 90 - 20 * index) for index in range(num_pictures)]
    parts = ["Tell me\n", " and\n\n", "", "\nbut not ", "\nthen?\n"]
    text = parts[0] + "".join(family.prompt + part for part in parts[1 : num_pictures + 1])
    images: list[Any] = [picture(*size) for size in sizes]
    settings = {**family.auto, "return_tensors": None}
    text_settings = {"return_tensors": None, "padding": False}
    outputs = processor(
        text=[text], images=images, images_kwargs=settings, text_kwargs=text_settings
    )
    runs: list[list[int]] = []
    for token_id in outputs["input_ids"][0]:
        if runs and runs[-1][0] == token_id:
            runs[-1][1] += 1
        else:
            runs.append([int(token_id), 1])
    return {"text": text, "sizes": [list(size) for size in sizes], "token_id_runs": runs}


def files_of(family: Family) -> Json:
    """Returns the JSON files of a checkpoint, as far as pictures go."""
    processor = family.processor | (
        {"image_processor": family.image_processor} if family.nested else {}
    )
    return {
        "config.json": family.config,
        "processor_config.json": processor,
        "preprocessor_config.json": {} if family.nested else family.image_processor,
        "tokenizer_config.json": {"extra_special_tokens": family.tokens},
    }


def has_low(family: Family) -> bool:
    return family.low is not None or family.name == "llava_onevision"


def write(family: Family) -> None:
    processor = processor_of(family)
    cases = [case_of(family, processor, size, "auto") for size in SIZES]
    counts = {"auto": [count_of(family, processor, size, "auto") for size in counted_sizes()]}
    if has_low(family):
        cases += [case_of(family, processor, size, "low") for size in LOW_SIZES]
        counts["low"] = [count_of(family, processor, size, "low") for size in counted_sizes()]
    content = {
        "files": files_of(family),
        "placeholder": family.placeholder,
        "cases": cases,
        "counts": counts,
        "prompts": [prompt_of(family, processor, count) for count in (1, 2, 4)],
    }
    lines = json.dumps(content, indent=1)
    text = re.sub(
        r"\[\s+(-?[\d.e+-]+(?:,\s+-?[\d.e+-]+)*)\s+\]",
        lambda found: re.sub(r"\s+", " ", found.group()),
        lines,
    )
    (GOLDEN / f"{family.name}.json").write_text(text + "\n")
    print(family.name, [case["num_tokens"] for case in cases])


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    Image.MAX_IMAGE_PIXELS = None
    names = sys.argv[1:]
    if not names:
        write_tokenizer(GOLDEN / "tokenizer.json")
    for family in FAMILIES:
        if not names or family.name in names:
            write(family)


if __name__ == "__main__":
    main()
