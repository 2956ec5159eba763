"""Pictures give the bytes, texts and token ids that transformers gives."""

import hashlib
import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from ouzel.prompts.vision.base import (
    Detail,
    ImageProcessor,
    Normalisation,
    NumbersPictures,
    Tiles,
)
from tests.prompts.vision.checkpoints import FAMILIES, GOLDEN, golden, loaded
from tests.prompts.vision.normalisation import normalise_tiles
from tests.prompts.vision.pictures import picture, sample_positions


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> dict[str, Any]:
    return golden(request.param)


@pytest.fixture
def processor(family: dict[str, Any], tmp_path: Path) -> ImageProcessor:
    return loaded(tmp_path, family["files"])


def shorten_runs(text: str, token: str) -> str:
    """Replaces each run of the token by the notation of the golden files: token*count."""
    return re.sub(
        f"(?:{re.escape(token)})+", lambda run: f"{token}*{len(run.group()) // len(token)}", text
    )


def check_pixels(tiles: Tiles, expected: dict[str, Any], normalisation: Normalisation) -> None:
    pixels = normalise_tiles(tiles, normalisation)
    assert list(pixels.shape) == expected["shape"]
    samples = pixels.ravel()[sample_positions(pixels.size)]
    np.testing.assert_allclose(samples, expected["samples"], rtol=0, atol=1e-6)
    assert hashlib.blake2b(tiles.tobytes(), digest_size=16).hexdigest() == expected["digest"]
    assert pixels.sum(dtype=np.float64) == pytest.approx(expected["sum"], rel=1e-9, abs=1e-3)


def test_the_pixels_are_the_references(family: dict[str, Any], processor: ImageProcessor) -> None:
    for case in family["cases"]:
        pieces = processor.pieces(picture(*case["size"]), case["detail"])
        for tiles, expected in zip(pieces, case.get("pieces", [case]), strict=True):
            check_pixels(tiles, expected, processor.normalisation)


def test_the_text_is_the_references(family: dict[str, Any], processor: ImageProcessor) -> None:
    assert processor.placeholder == family["placeholder"]
    for case in family["cases"]:
        width, height = case["size"]
        layout = processor.layout(width, height, case["detail"])
        assert shorten_runs(layout.text, processor.feature_token) == case["text"]
        assert layout.num_tokens == case["num_tokens"] == layout.text.count(processor.feature_token)
        if "pieces" in case:
            counts = [piece["num_tokens"] for piece in case["pieces"]]
            assert counts == [*(layout.piece_tokens or (layout.num_tokens,))]
        assert layout.position_grid == (
            tuple(case["position_grid"]) if "position_grid" in case else None
        )


def test_as_many_tokens_are_counted_as_in_the_reference(
    family: dict[str, Any], processor: ImageProcessor
) -> None:
    details: tuple[Detail, ...] = ("auto", "low")
    for detail in details:
        for width, height, num_tokens in family["counts"].get(detail, ()):
            assert processor.layout(width, height, detail).num_tokens == num_tokens, (width, height)


def test_prompts_have_the_token_ids_of_the_reference(
    family: dict[str, Any], processor: ImageProcessor
) -> None:
    """The whole text is encoded at once: line breaks beside a picture may join other tokens."""
    tokenizer = Tokenizer.from_file(str(GOLDEN / "tokenizer.json"))
    for prompt in family["prompts"]:
        texts = [processor.layout(width, height, "auto").text for width, height in prompt["sizes"]]
        if isinstance(processor, NumbersPictures):
            texts = [processor.number_text(number) + text for number, text in enumerate(texts)]
        pieces = prompt["text"].split(processor.placeholder)
        assert len(pieces) == len(texts) + 1
        whole = "".join(itertools.chain.from_iterable(zip(pieces, [*texts, ""], strict=True)))
        expected = [token_id for token_id, count in prompt["token_id_runs"] for _ in range(count)]
        assert tokenizer.encode(whole, add_special_tokens=False).ids == expected


def test_a_processor_goes_to_the_process_that_decodes(processor: ImageProcessor) -> None:
    assert pickle.loads(pickle.dumps(processor)) == processor


def test_high_detail_is_the_checkpoints_own(processor: ImageProcessor) -> None:
    image = picture(400, 250)
    assert processor.layout(400, 250, "high") == processor.layout(400, 250, "auto")
    high, auto = processor.pieces(image, "high"), processor.pieces(image, "auto")
    assert len(high) == len(auto)
    assert all(map(np.array_equal, high, auto))


def test_a_line_is_no_picture(processor: ImageProcessor) -> None:
    with pytest.raises(ValueError, match=r"the aspect ratio must be <= 200, given 1000x4 pixels"):
        processor.layout(1000, 4, "auto")
    with pytest.raises(ValueError, match=r"given 4x1000 pixels"):
        processor.pieces(picture(4, 1000), "low")[0]
