"""LFM2-VL's pictures and pages are encoded in pieces: the tiles of a large one, and a thumbnail."""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest

from ouzel.config import MediaConfig
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import ContentPart, Detail, DocumentPart, MediaPart
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.prepared_images import EncoderInput, PreparedImage
from tests.api.seeing import data_url
from tests.prompts.media.papers import coloured
from tests.prompts.vision.checkpoints import golden, loaded

TILE, TILE_TOKENS, NUM_TILES = 512, 256, 6
LARGE, SMALL = data_url(1000, 800), data_url(320, 256)
FEATURE = "<image>"


def shown(url: str, detail: Detail = "auto") -> MediaPart:
    return MediaPart("url", url, detail)


def pdf(num_pages: int, detail: Detail = "auto") -> DocumentPart:
    file = b64encode(coloured(num_pages, (480, 384))).decode()  # 1000 x 800 pixels are rendered
    return DocumentPart("file", f"data:application/pdf;base64,{file}", detail)


def prepare(directory: Path, *requests: Sequence[ContentPart]) -> list[list[list[PreparedImage]]]:
    """Returns the images of each part of each request; one reader takes all requests."""

    async def read() -> list[list[list[PreparedImage]]]:
        processor = loaded(directory, golden("lfm2_vl")["files"])
        reader = ImageReader(processor, MediaLoader(MediaConfig()), 100_000)
        found = []
        try:
            for parts in requests:
                async with reader.prepare(parts):
                    found.append([list(part) for part in reader.prepared(parts)])
        finally:
            reader.close()
        return found

    return asyncio.run(read())


def is_thumbnail(piece: EncoderInput) -> bool:
    return piece.pixels.shape[0] == 1 and piece.pixels.shape[1:] != (TILE, TILE)


def list_pieces(image: PreparedImage) -> list[EncoderInput]:
    return [piece for piece in image.inputs if isinstance(piece, EncoderInput)]


def check_pieces(image: PreparedImage) -> tuple[EncoderInput, EncoderInput]:
    """Checks that a large picture is a piece of six tiles and a thumbnail, and returns both."""
    tiles, whole = list_pieces(image)
    assert tiles.pixels.shape == (NUM_TILES, TILE, TILE) and is_thumbnail(whole)
    assert tiles.num_tokens == NUM_TILES * TILE_TOKENS
    assert image.text.count(FEATURE) == tiles.num_tokens + whole.num_tokens
    return tiles, whole


@pytest.mark.parametrize("details", [("auto", "low"), ("low", "auto"), ("low", "high", "auto")])
def test_one_file_may_be_shown_in_several_details(
    details: tuple[Detail, ...], tmp_path: Path
) -> None:
    """A file is decoded once; its pieces in one detail must not be taken for another's."""
    [parts] = prepare(tmp_path, [shown(LARGE, detail) for detail in details])

    by_detail = dict(zip(details, (image for [image] in parts), strict=True))
    [low] = list_pieces(by_detail["low"])
    _, whole = check_pieces(by_detail["auto"])
    assert low.pixels.values == whole.pixels.values
    assert low.num_tokens == whole.num_tokens == by_detail["low"].text.count(FEATURE)
    digests = [piece.digest for image in by_detail.values() for piece in image.inputs]
    assert len(set(digests)) == len(digests)


def test_pictures_of_several_numbers_of_pieces_stay_apart(tmp_path: Path) -> None:
    parts = [shown(SMALL), shown(LARGE), shown(LARGE, "low"), shown(SMALL)]
    [[[small], [large], [low], [again]]] = prepare(tmp_path, parts)
    assert [len(image.inputs) for image in (small, low)] == [1, 1]
    check_pieces(large)
    assert small == again
    assert list_pieces(small)[0].pixels.shape == (1, 320, 256)


def test_each_page_of_a_file_has_its_own_pieces(tmp_path: Path) -> None:
    [[high, low]] = prepare(tmp_path, [pdf(2), pdf(2, "low")])
    digests = []
    for page, small in zip(high, low, strict=True):
        tiles, whole = check_pieces(page)
        [only] = list_pieces(small)
        assert only.pixels.values == whole.pixels.values
        digests += [tiles.digest, whole.digest, only.digest]
    assert len(set(digests)) == 6
    assert list_pieces(high[0])[0].pixels.values != list_pieces(high[1])[0].pixels.values


def test_pieces_that_come_again_are_the_same_in_every_detail(tmp_path: Path) -> None:
    """A request takes prepared pieces of earlier ones, and prepares the missing detail."""
    first, both, page, pages = prepare(
        tmp_path,
        [shown(LARGE, "low")],
        [shown(LARGE, "auto"), shown(LARGE, "low")],
        [pdf(1)],
        [pdf(1), pdf(1, "low")],
    )
    assert first[0] == both[1]
    check_pieces(both[0][0])
    assert page[0] == pages[0]
    [only] = list_pieces(pages[1][0])
    assert only.pixels.values == list_pieces(pages[0][0])[1].pixels.values
