"""Every file becomes a picture or a refusal that names the part, soon and in little memory."""

import subprocess
import sys

import msgspec
import pytest

from tests.prompts.media.files import PATH
from tests.prompts.media.hostile_outcomes import Outcome

REFUSALS = ("refused by its header", "refused by its pixels")
MAX_BYTES = 48 * 2**20  # a file has up to a million pixels, at up to 24 bytes each
MAX_PROCESSOR_S = 1.0


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    program = [sys.executable, "-m", "tests.prompts.media.hostile_outcomes"]
    done = subprocess.run(program, capture_output=True, check=True)
    return msgspec.json.Decoder(Outcome).decode_lines(done.stdout)


def of_group(outcomes: list[Outcome], group: str) -> list[Outcome]:
    found = [outcome for outcome in outcomes if outcome.group == group]
    assert len(found) >= 10
    return found


def test_each_is_a_picture_or_refused_by_the_name_of_its_part(outcomes: list[Outcome]) -> None:
    assert len({(outcome.group, outcome.name) for outcome in outcomes}) == len(outcomes) >= 450
    assert [outcome for outcome in outcomes if outcome.result not in ("picture", *REFUSALS)] == []
    refused = [outcome for outcome in outcomes if outcome.result != "picture"]
    assert [outcome for outcome in refused if not outcome.message.startswith(f"{PATH} must ")] == []
    assert {outcome.result for outcome in refused} == set(REFUSALS)


def test_none_takes_much_memory_or_time(outcomes: list[Outcome]) -> None:
    [large] = [outcome for outcome in outcomes if outcome.group == "large"]
    assert large.peak_bytes > 10**6, "what a picture takes is not measured"

    assert [outcome for outcome in outcomes if outcome.peak_bytes > MAX_BYTES] == []
    assert [outcome for outcome in outcomes if outcome.processor_s > MAX_PROCESSOR_S] == []


def test_a_picture_with_too_large_a_size_is_refused_before_its_pixels(
    outcomes: list[Outcome],
) -> None:
    enormous = of_group(outcomes, "enormous")
    too_large = [
        each
        for each in enormous
        if each.name.endswith(("65535x65535", "16384x16384", "16383x16383"))
    ]

    assert {each.name.partition(" ")[0] for each in too_large} == {
        "PNG",
        "JPEG",
        "GIF",
        "BMP",
        "lossless",
        "lossy",
    }
    for outcome in too_large:
        assert outcome.result == "refused by its header"
        assert "must have <= 1000000 pixels (max_media_pixels), given " in outcome.message


def test_a_file_that_is_no_picture_is_refused_by_its_header(outcomes: list[Outcome]) -> None:
    assert {outcome.result for outcome in of_group(outcomes, "no_pictures")} == {
        "refused by its header"
    }


def test_a_picture_with_truncated_pixels_is_refused(outcomes: list[Outcome]) -> None:
    """Files with further frames, and files without their last 20 bytes, may have all pixels."""
    cut_off = of_group(outcomes, "cut_off")
    in_pixels = [
        each
        for each in cut_off
        if not any(word in each.name for word in ("frames", "MPO", "all but"))
    ]

    assert len(in_pixels) >= 80
    assert [outcome.name for outcome in in_pixels if outcome.result == "picture"] == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("JPEG with thousands of scans", "must be a JPEG with <= 50 scans, given 5005"),
        ("BMP with run lengths", "must not be a BMP with run lengths"),
        ("PNG of empty chunks", "must be a picture"),
        ("JPEG of fill bytes", "must be a picture"),
        ("GIF of comments", "must be a picture"),
    ],
)
def test_a_picture_that_would_take_long_is_refused_by_its_header(
    outcomes: list[Outcome], name: str, message: str
) -> None:
    [outcome] = [outcome for outcome in outcomes if outcome.name == name]

    assert (outcome.result, message in outcome.message) == ("refused by its header", True)
