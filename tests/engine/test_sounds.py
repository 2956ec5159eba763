"""Tests prompts with pictures and sounds in an engine whose model sees and hears."""

import zlib
from collections.abc import Generator, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput, SoundInput
from ouzel.types.step_output import FinishReason
from tests.engine.requests import make_request, run, run_alone
from tests.engine.test_images import TEXT, picture


def sound(name: str, *runs: tuple[int, int]) -> SoundInput:
    features = np.random.default_rng(zlib.crc32(name.encode())).standard_normal((4, 6), np.float32)
    return SoundInput(
        digest=b"sound" + zlib.crc32(name.encode()).to_bytes(11, "big"),
        runs=runs,
        shape=(4, 6),
        features=features.tobytes(),
        num_frames=6,
    )


def request(*media: MediaInput, token_ids: Iterable[int] = TEXT) -> EngineRequest:
    return msgspec.structs.replace(make_request(token_ids), images=media)


def make_runner(**options: Any) -> FakeRunner:  # options of FakeRunner
    return FakeRunner(
        **{"num_encoder_parts": 2, "has_hearing": True, "max_num_batched_tokens": 1000, **options}
    )


def tokens_alone(original: EngineRequest) -> list[int]:
    return run_alone(EngineCore(make_runner(), prefix_caching=False), original)[0].token_ids


CAT, BARK = picture("cat", (3, 9)), sound("bark", (16, 7))
SONG, DOG = sound("song", (2, 5)), picture("dog", (8, 9))


def test_the_answer_depends_on_each_picture_and_each_sound() -> None:
    answers = [
        tokens_alone(request(*media))
        for media in (
            (),
            (CAT,),
            (BARK,),
            (CAT, BARK),
            (picture("mouse", (3, 9)), BARK),
            (CAT, sound("song", (16, 7))),
            (SONG, DOG),
        )
    ]

    assert len({tuple(answer) for answer in answers}) == len(answers)


@pytest.mark.parametrize("chunk", [1, 3, 7, 16, 41])
@pytest.mark.parametrize("media", [(CAT, BARK), (SONG, DOG)])
def test_a_prompt_in_chunks_gives_the_same_tokens(
    media: tuple[MediaInput, ...], chunk: int
) -> None:
    engine = EngineCore(make_runner(max_num_seqs=1, max_num_batched_tokens=chunk))

    assert run_alone(engine, request(*media))[0].token_ids == tokens_alone(request(*media))


def test_requests_beside_each_other_change_nobodys_tokens() -> None:
    requests = [request(CAT, BARK), request(SONG, DOG), request(BARK), request(CAT), request()]

    results = run(EngineCore(make_runner(max_num_batched_tokens=16)), requests)

    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_pictures_and_sounds_are_cached_by_their_content() -> None:
    runner = make_runner()
    engine = EngineCore(runner)
    run_alone(engine, request(CAT, BARK))
    other = request(CAT, sound("howl", (16, 7)))

    again, changed = (run_alone(engine, each)[0] for each in (request(CAT, BARK), other))

    assert again.final.num_cached_tokens >= 36
    assert 12 <= changed.final.num_cached_tokens <= 16
    assert changed.token_ids == tokens_alone(other)
    assert runner.encoded == [CAT.digest, BARK.digest, other.images[1].digest]


def test_only_the_tokens_of_pictures_attend_to_each_other() -> None:
    runner = make_runner(attends_to_whole_images=True)
    engine = EngineCore(runner, prefix_caching=False)
    for each in (request(CAT, BARK), request(CAT, BARK)):
        runner.batches.clear()
        run_alone(engine, each)

    begins = runner.batches[0].two_way_begins

    assert begins is not None
    assert begins.tolist() == [-1] * 3 + [3] * 9 + [-1] * 28


def test_the_tokens_of_a_sound_have_the_positions_of_text() -> None:
    seen = picture("a", (4, 4), grid=(1, 2, 2))
    images = PromptImages([sound("a", (1, 2)), seen, sound("b", (9, 3))], 13)

    positions = images.positions(0, 14)

    assert positions is not None
    assert positions[0].tolist() == [0, 1, 2, 3, *[4] * 4, 6, 7, 8, 9, 10, 11]
    assert positions[1].tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11]


class DeepRunner(FakeRunner):
    """A runner whose pictures have features for a further layer, unlike its sounds."""

    def encode(self, image: MediaInput) -> Generator[None, None, NDArray[np.float32]]:
        features = yield from super().encode(image)
        return np.repeat(features, 2, axis=0) if isinstance(image, ImageInput) else features


def test_a_sound_beside_a_picture_with_more_features_gets_zeros() -> None:
    runner = DeepRunner(num_encoder_parts=1, has_hearing=True, max_num_batched_tokens=1000)
    engine = EngineCore(runner, prefix_caching=False)
    for each in (request(CAT, BARK), request(CAT, BARK)):
        runner.batches.clear()
        result = run_alone(engine, each)[0]

    features = runner.batches[0].image_features

    assert features is not None
    assert features.shape == (2, 16, 1)
    assert (features[0] > 0).all()
    assert features[1, :, 0].astype(bool).tolist() == [True] * 9 + [False] * 7
    assert result.token_ids == tokens_alone(request(CAT, BARK))


GRID = picture("cat", (3, 12), grid=(1, 3, 4))


@pytest.mark.parametrize(
    ("media", "can", "fault"),
    [
        ((CAT,), {"has_vision": False}, "this model hears sounds, but sees no images"),
        ((CAT, BARK), {"has_vision": False}, "this model hears sounds, but sees no images"),
        ((CAT, BARK), {"has_hearing": False}, "this model sees images, but hears no sounds"),
        ((BARK,), {"has_vision": False, "has_hearing": False}, "this model reads text only"),
        ((CAT, sound("bark", (8, 7))), {}, "the tokens of sound 1 must follow the tokens before"),
        ((CAT, sound("bark")), {}, "sound 1 has no tokens"),
        ((GRID, sound("bark", (30, 30))), {}, "the tokens of the images and sounds end at 60"),
        ((GRID, msgspec.structs.replace(BARK, features=b"")), {}, "sound 1 must have 96 bytes"),
    ],
)
def test_media_that_cannot_be_are_refused(
    media: tuple[MediaInput, ...], can: dict[str, bool], fault: str
) -> None:
    runner = make_runner()
    runner.info = msgspec.convert(msgspec.structs.asdict(runner.info) | can, EngineInfo)

    result = run_alone(EngineCore(runner), request(*media))[0]

    assert result.finish_reason is FinishReason.REFUSED
    assert fault in (result.final.error or "")
