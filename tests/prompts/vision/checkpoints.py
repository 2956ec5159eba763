"""Writes model directories with only the files that an image processor is made from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ouzel.prompts.vision.base import ImageProcessor
from ouzel.prompts.vision.loader import load_image_processor

GOLDEN = Path(__file__).parent / "golden"
FAMILIES = sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "tokenizer")


def golden(family: str) -> dict[str, Any]:  # Any: the JSON of a golden file
    content: dict[str, Any] = json.loads((GOLDEN / f"{family}.json").read_text())
    return content


def write_files(directory: Path, files: Mapping[str, object]) -> None:
    for name, content in files.items():
        if content:
            (directory / name).write_text(json.dumps(content))


def loaded(directory: Path, files: Mapping[str, object]) -> ImageProcessor:
    write_files(directory, files)
    processor = load_image_processor(directory)
    assert processor is not None
    return processor
