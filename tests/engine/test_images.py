"""Tests images in an engine: chunks, sharing, preemption, and the encoder between steps."""

import zlib
from collections.abc import Generator, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.scheduling.image_encoder import ImageEncoder
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput
from ouzel.types.step_output import FinishReason
from tests.engine.requests import make_request, run, run_alone

TEXT = [(7 * i) % 89 for i in range(40)]


def picture(
    name: str, *runs: tuple[int, int], grid: tuple[int, int, int] | None = None
) -> ImageInput:
    pixels = (
        np.random.default_rng(zlib.crc32(name.encode()))
        .integers(0, 256, (1, 2, 2, 3), np.uint8)
        .tobytes()
    )
    return ImageInput(
        digest=zlib.crc32(name.encode()).to_bytes(16, "big"),
        runs=runs,
        shape=(1, 2, 2),
        pixels=pixels,
        rescale=1 / 255,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        size=(2, 2),
        position_grid=grid,
    )


def later_frames(name: str, run: tuple[int, int], shift: int = 3) -> ImageInput:
    """Makes frames of a video that continue the frames before them in time."""
    return msgspec.structs.replace(picture(name, run, grid=(1, 2, 2)), time_shift=shift)


def request(
    *images: ImageInput,
    token_ids: Iterable[int] = TEXT,
    **params: Any,  # parameters of make_request
) -> EngineRequest:
    return msgspec.structs.replace(make_request(token_ids, **params), images=images)


def tokens_alone(original: EngineRequest) -> list[int]:
    engine = EngineCore(
        FakeRunner(num_encoder_parts=1, max_num_batched_tokens=1000), prefix_caching=False
    )
    return run_alone(engine, original)[0].token_ids


CAT, DOG = picture("cat", (3, 12)), picture("dog", (20, 4), (26, 6))


def test_the_answer_depends_on_the_picture_and_its_place() -> None:
    answers = [
        tokens_alone(request(*images))
        for images in (
            (),
            (CAT,),
            (DOG,),
            (CAT, DOG),
            (picture("cat", (4, 12)),),
            (picture("mouse", (3, 12)), DOG),
        )
    ]

    assert len({tuple(answer) for answer in answers}) == len(answers)


@pytest.mark.parametrize("grid", [None, (1, 3, 4)])
def test_a_beam_search_sees_the_pictures(grid: tuple[int, int, int] | None) -> None:
    dog = picture("dog", (20, 12), grid=grid)
    alone, wide = (
        request(dog, max_tokens=1, num_logprobs=3, beam_search=beam_search)
        for beam_search in (None, BeamSearchParams(width=3))
    )
    engine = EngineCore(
        FakeRunner(num_encoder_parts=1, max_num_batched_tokens=1000), prefix_caching=False
    )

    assert run_alone(engine, wide)[0].logprobs == run_alone(engine, alone)[0].logprobs


@pytest.mark.parametrize("chunk", range(1, 42))
@pytest.mark.parametrize("grid", [None, (1, 3, 4)])
def test_a_prompt_in_chunks_gives_the_same_tokens(
    chunk: int, grid: tuple[int, int, int] | None
) -> None:
    dog = picture("dog", (20, 12), grid=grid)
    cat = picture("cat", (3, 12), grid=grid)
    engine = EngineCore(
        FakeRunner(num_encoder_parts=3, max_num_seqs=1, max_num_batched_tokens=chunk)
    )

    assert run_alone(engine, request(cat, dog))[0].token_ids == tokens_alone(request(cat, dog))


def test_the_same_picture_is_encoded_once_and_its_blocks_are_shared() -> None:
    runner = FakeRunner(num_encoder_parts=2)
    engine = EngineCore(runner)
    run_alone(engine, request(CAT, DOG))
    longer = [*TEXT, 5, 6, 7, 8, 9]

    second = run_alone(engine, request(CAT, DOG, token_ids=longer))[0]

    assert second.token_ids == tokens_alone(request(CAT, DOG, token_ids=longer))
    assert second.final.num_cached_tokens == 40
    assert runner.encoded == [CAT.digest, DOG.digest]
    assert (engine.stats().num_images_encoded, engine.stats().num_image_hits) == (2, 2)


def test_a_cached_image_is_not_encoded_again() -> None:
    runner = FakeRunner(num_encoder_parts=2)
    engine = EngineCore(runner)
    assert isinstance(engine._images, ImageEncoder)
    run_alone(engine, request(CAT, DOG))
    engine._images._max_bytes = 0
    # the others' features make way for it
    run_alone(engine, request(picture("mouse", (0, 4)), token_ids=TEXT[:8]))
    runner.encoded.clear()

    second = run_alone(engine, request(CAT, DOG, token_ids=[*TEXT, 5]))[0]

    assert second.token_ids == tokens_alone(request(CAT, DOG, token_ids=[*TEXT, 5]))
    assert runner.encoded == []


def test_equal_tokens_with_another_picture_share_nothing_behind_it() -> None:
    engine = EngineCore(FakeRunner(num_encoder_parts=1))
    run_alone(engine, request(CAT, DOG))
    mouse = picture("mouse", (20, 4), (26, 6))

    result = run_alone(engine, request(CAT, mouse))[0]

    assert result.token_ids == tokens_alone(request(CAT, mouse))
    assert result.final.num_cached_tokens == 20


def test_another_salt_finds_nothing() -> None:
    runner = FakeRunner(num_encoder_parts=1)
    engine = EngineCore(runner)
    run_alone(engine, request(CAT, cache_salt="a"))
    original = request(CAT, cache_salt="b")

    result = run_alone(engine, original)[0]

    assert result.token_ids == tokens_alone(original)
    assert result.final.num_cached_tokens == 0
    assert runner.encoded == [CAT.digest, CAT.digest]


def test_an_image_seen_whole_is_never_cut() -> None:
    for chunk in range(1, 42):
        runner = FakeRunner(
            num_encoder_parts=1,
            attends_to_whole_images=True,
            max_num_seqs=1,
            max_num_batched_tokens=chunk,
        )
        run_alone(EngineCore(runner), request(CAT, picture("dog", (20, 10))))
        begins = {int(batch.past_lens[0]) for batch in runner.batches}

        assert begins.isdisjoint({*range(4, 15), *range(21, 30)})


def test_prompts_with_images_beside_others_change_nobodys_tokens() -> None:
    requests = [
        request(picture(f"{i % 5}", (i % 7, 9)), token_ids=TEXT[: 20 + i]) for i in range(16)
    ]
    requests += [request(token_ids=[i, *TEXT[:10]]) for i in range(16)]
    engine = EngineCore(FakeRunner(num_encoder_parts=3, num_blocks=64))

    results = run(engine, requests)

    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_preempted_prompts_with_images_give_the_same_tokens() -> None:
    requests = [
        request(picture(f"{i}", (2, 9)), token_ids=TEXT[: 20 + i], max_tokens=30) for i in range(6)
    ]
    engine = EngineCore(FakeRunner(num_encoder_parts=2, num_blocks=20, max_num_seqs=6))

    results = run(engine, requests)

    assert engine.stats().num_preemptions
    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_features_that_do_not_fit_are_made_again() -> None:
    requests = [request(picture(f"{i}", (2, 9)), token_ids=TEXT[: 20 + i], n=2) for i in range(6)]
    engine = EngineCore(FakeRunner(num_encoder_parts=2))
    assert isinstance(engine._images, ImageEncoder)
    engine._images._max_bytes = 0

    results = run(engine, requests)

    for each in requests:
        assert results[each.request_id, 0].token_ids == tokens_alone(each)


def test_a_stream_gets_a_token_between_any_two_parts_of_an_image() -> None:
    runner = FakeRunner(num_encoder_parts=10)
    engine = EngineCore(runner)
    stream = request(token_ids=[1, 2, 3], max_tokens=40)
    engine.add(stream)
    while not engine.step():
        pass
    engine.add(request(CAT))

    num_tokens = 0
    while not runner.encoded:
        num_tokens += sum(len(output.token_ids) for output in engine.step())

    assert num_tokens == 10


def test_a_failing_encoder_ends_the_requests_with_that_image_only() -> None:
    class Failing(FakeRunner):
        def encode(self, image: MediaInput) -> Generator[None, None, NDArray[np.float32]]:
            if image.digest == DOG.digest:
                raise RuntimeError("no such operation")
            return super().encode(image)

    engine = EngineCore(Failing(num_encoder_parts=1))
    bad, good, text = request(CAT, DOG), request(CAT), request()

    results = run(engine, [bad, good, text])

    assert results[bad.request_id, 0].finish_reason is FinishReason.ERROR
    assert "the vision encoder failed: no such operation" in (
        results[bad.request_id, 0].final.error or ""
    )
    assert results[good.request_id, 0].token_ids == tokens_alone(good)
    assert results[text.request_id, 0].token_ids == tokens_alone(text)


def test_an_aborted_request_with_images_frees_its_blocks() -> None:
    engine = EngineCore(FakeRunner(num_encoder_parts=5))
    original = request(CAT)
    engine.add(original)
    engine.step()

    engine.abort(original.request_id)
    while engine.has_unfinished():
        engine.step()

    assert engine.stats().num_used_blocks == 0


@pytest.mark.parametrize(
    ("images", "fault"),
    [
        (
            (picture("cat", (3, 400)),),
            "the tokens of the images and sounds end at 403, the prompt has 40",
        ),
        ((CAT, CAT), "the tokens of image 1 must follow the tokens before it"),
        ((picture("cat"),), "image 0 has no tokens"),
        (
            (picture("cat", (3, 12), grid=(1, 3, 5)),),
            "the tokens of image 0 must be one run of (1, 3, 5)",
        ),
        (
            (picture("cat", (3, 12), grid=(1, 3, 4)), DOG),
            "either all images must have a grid of positions, or none",
        ),
        (
            (picture("a", (2, 4), grid=(1, 2, 2)), later_frames("b", (7, 4))),
            "image 1, a frame of a video, must directly follow a frame",
        ),
        ((later_frames("b", (7, 4)),), "image 0, a frame of a video, must directly follow a frame"),
        ((msgspec.structs.replace(CAT, pixels=b"\0"),), "image 0 must have 3 bytes for each pixel"),
    ],
)
def test_images_that_cannot_be_are_refused(images: tuple[ImageInput, ...], fault: str) -> None:
    result = run_alone(EngineCore(FakeRunner(num_encoder_parts=1)), request(*images))[0]

    assert result.finish_reason is FinishReason.REFUSED
    assert fault in (result.final.error or "")


def test_a_text_model_refuses_images() -> None:
    result = run_alone(EngineCore(FakeRunner()), request(CAT))[0]

    assert result.final.error == "this model reads text only"


def test_positions_of_a_grid_and_of_the_text_behind_it() -> None:
    images = PromptImages(
        [picture("a", (2, 6), grid=(1, 2, 3)), picture("b", (9, 4), grid=(1, 4, 1))], 15
    )

    positions = images.positions(0, 17)

    assert positions is not None
    assert positions[0].tolist() == [0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 6, 6, 6, 10, 11, 12, 13]
    assert positions[1].tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert positions[2].tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 6, 6, 6, 10, 11, 12, 13]
    again = images.positions(16, 18)
    assert again is not None and again.tolist() == [[13, 14]] * 3


def test_positions_of_a_video_go_on_in_time_only() -> None:
    images = PromptImages(
        [
            picture("a", (2, 4), grid=(1, 2, 2)),
            later_frames("b", (6, 4), 3),
            later_frames("c", (10, 4), 6),
        ],
        16,
    )

    positions = images.positions(0, 17)

    assert positions is not None
    assert positions[0].tolist() == [0, 1, *[2] * 4, *[5] * 4, *[8] * 4, 4, 5, 9]
    assert positions[1].tolist() == [0, 1, *[2, 2, 3, 3] * 3, 4, 5, 9]
    assert positions[2].tolist() == [0, 1, *[2, 3, 2, 3] * 3, 4, 5, 9]
