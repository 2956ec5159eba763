"""LLaVA-OneVision shows each of several pictures, or of several pages, in one tile."""

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

from ouzel.config import MediaConfig
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import ContentPart, Detail, DocumentPart, MediaPart
from ouzel.prompts.media_readers.image_reader import ImageReader
from tests.api.seeing import data_url
from tests.prompts.media.papers import coloured
from tests.prompts.vision.checkpoints import golden, loaded

ONE_TILE = 730
TILES = {"picture": 3149, "page": 3699}


def shown(detail: Detail = "auto") -> MediaPart:
    return MediaPart("url", data_url(400, 500), detail)


def pdf(num_pages: int, detail: Detail = "auto") -> DocumentPart:
    file = b64encode(coloured(num_pages, (200, 200))).decode()
    return DocumentPart("file", f"data:application/pdf;base64,{file}", detail)


async def count_tokens(directory: Path, *parts: ContentPart) -> list[list[int]]:
    """Returns the numbers of tokens of the pictures of each part."""
    processor = loaded(directory, golden("llava_onevision")["files"])
    reader = ImageReader(processor, MediaLoader(MediaConfig()), 100_000)
    try:
        async with reader.prepare(parts):
            return [
                [sum(own.num_tokens for own in image.inputs) for image in part]
                for part in reader.prepared(parts)
            ]
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("parts", "num_tokens"),
    [
        ([shown()], [[TILES["picture"]]]),
        ([shown(), shown("high")], [[ONE_TILE], [TILES["picture"]]]),
        ([pdf(1)], [[TILES["page"]]]),
        ([pdf(2)], [[ONE_TILE] * 2]),
        ([pdf(2, "high")], [[TILES["page"]] * 2]),
        ([shown(), pdf(1)], [[ONE_TILE], [ONE_TILE]]),
    ],
)
def test_each_of_several_is_one_tile_unless_asked_for(
    parts: list[ContentPart], num_tokens: list[list[int]], tmp_path: Path
) -> None:
    assert asyncio.run(count_tokens(tmp_path, *parts)) == num_tokens
