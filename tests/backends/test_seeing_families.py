"""What a family's image processor says of a picture is what its vision encoder makes of it.

The one runs beside the server's event loop and the other in the engine; between them are the chat template and the
tokenizer. Here a chat with pictures goes all the way through them, in model directories like the published ones.
"""

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

from ouzel.config import MediaConfig
from ouzel.engine.base import ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.render import Prompt, PromptRenderer
from ouzel.prompts.vision.loader import load_image_processor, load_video_processor
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.worker_threads import WorkerThreads
from tests.backends import of_kinds
from tests.backends.conftest import Load
from tests.backends.seeing_chats import GOLDEN_CHATS, NUM_LAST, shortened
from tests.backends.seeing_families import FAMILIES, IMAGE_TOKEN
from tests.backends.seeing_family import GOLDEN
from tests.backends.seeing_videos import FAMILIES_WITH_VIDEOS, FEATURE_TOKENS, VIDEO_CHATS, Film
from tests.backends.test_openvino_vision import KINDS, Limited
from tests.engine.requests import Result, make_request, run, run_alone
from tests.prompts.media.files import saved
from tests.prompts.vision.pictures import picture

GOLDEN_ANSWERS: dict[str, dict[str, dict[str, Any]]] = json.loads(  # by family and chat
    (GOLDEN.parent / "golden_seeing.json").read_text()
)
GOLDEN_VIDEOS: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (GOLDEN.parent / "golden_seeing_videos.json").read_text()
)

# Width and height: lying, standing, smaller than a patch, larger than any tile, and the longest that are allowed.
SIZES = [(90, 40), (30, 75), (1, 1), (130, 127), (200, 1), (2, 300)]
Part = dict[str, object]
Chat = list[dict[str, object]]


OF_KINDS = pytest.mark.parametrize(
    "model", of_kinds("chats with pictures of further families", [*FAMILIES], KINDS), indirect=True
)


def text(words: str) -> Part:
    return {"type": "text", "text": words}


def shown(image: Image.Image, detail: str = "auto") -> Part:
    return {
        "type": "image_url",
        "image_url": {"url": url_of(saved(image, "PNG")), "detail": detail},
    }


def filmed(make_film: Film) -> Part:
    frames = make_film.frames()
    if not make_film.is_file:
        urls = [url_of(saved(frame, "PNG")) for frame in frames]
        return {"type": "video", "video": urls, "fps": make_film.fps}
    file = saved(
        frames[0], "PNG", save_all=True, append_images=frames[1:], duration=1000 / make_film.fps
    )
    return {"type": "video_url", "video_url": {"url": url_of(file)}}


def url_of(file: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(file).decode()


def part_of(part: str | tuple[int, int] | Film) -> Part:
    match part:
        case str():
            return text(part)
        case Film():
            return filmed(part)
        case _:
            return shown(picture(*part))


def chat(*parts: Part) -> Chat:
    return [{"role": "user", "content": list(parts)}]


@dataclass(frozen=True)
class SeeingModel:
    name: str  # of FAMILIES
    directory: Path
    runner: ModelRunner

    def prompts(self, chats: Sequence[Chat]) -> list[Prompt]:
        return asyncio.run(self._prompts(chats))

    async def _prompts(self, chats: Sequence[Chat]) -> list[Prompt]:
        processor = load_image_processor(self.directory)
        assert processor is not None
        info, tokenizer = self.runner.info, load_tokenizer(self.directory)
        assert tokenizer.control_tokens[processor.feature_token] == IMAGE_TOKEN
        videos = load_video_processor(self.directory)
        images = ImageReader(processor, MediaLoader(MediaConfig()), info.max_model_len, videos)
        template = ChatTemplate.load(self.directory)
        renderer = PromptRenderer(
            tokenizer, template, info.max_model_len, info.vocab_size, images=images
        )
        threads = WorkerThreads("chats", 1)
        try:
            return [await threads.run(partial(renderer.render_chat, each)) for each in chats]
        finally:
            threads.close()
            renderer.close()


def request_of(
    prompt: Prompt, max_tokens: int = 4, **params: Any
) -> EngineRequest:  # what make_request takes
    asked = make_request(prompt.token_ids, max_tokens=max_tokens, num_logprobs=0, **params)
    return msgspec.structs.replace(asked, images=prompt.images)


def logprobs_of(result: Result) -> list[float]:
    assert result.finish_reason == "length"
    return [position.sampled.logprob for position in result.logprobs]


@pytest.fixture(scope="module", params=FAMILIES)
def model(
    request: pytest.FixtureRequest, load: Load, tmp_path_factory: pytest.TempPathFactory
) -> SeeingModel:
    directory = FAMILIES[request.param].write(tmp_path_factory.mktemp("model"))
    return SeeingModel(request.param, directory, load(directory))


def test_every_checkpoint_that_sees_has_a_case() -> None:
    assert {family.checkpoint for family in FAMILIES.values()} == {
        path.name for path in GOLDEN.iterdir()
    }
    assert FAMILIES.keys() == GOLDEN_ANSWERS.keys()


@OF_KINDS
def test_chats_with_pictures_come_to_what_transformers_makes_of_them(model: SeeingModel) -> None:
    expected = GOLDEN_ANSWERS[model.name]
    prompts = model.prompts(
        [
            chat(
                *(text(part) if isinstance(part, str) else shown(picture(*part)) for part in parts)
            )
            for parts in GOLDEN_CHATS.values()
        ]
    )
    requests = [request_of(prompt, num_prompt_logprobs=1) for prompt in prompts]
    results = run(EngineCore(model.runner), requests)

    assert expected.keys() == GOLDEN_CHATS.keys()
    processor = load_image_processor(model.directory)
    assert processor is not None
    for golden, prompt, request in zip(expected.values(), prompts, requests, strict=True):
        result = results[request.request_id, 0]
        assert shortened(prompt.text, processor.feature_token) == golden["text"]
        assert len(prompt.token_ids) == golden["num_tokens"]
        last = [position.sampled.logprob for position in result.prompt_logprobs[-NUM_LAST:]]
        assert last == pytest.approx(golden["logprobs"], abs=1e-4)
        assert result.token_ids[0] == golden["next_token_id"]
        assert logprobs_of(result)[0] == pytest.approx(golden["next_logprob"], abs=1e-4)


@OF_KINDS
def test_chats_with_videos_come_to_what_transformers_makes_of_them(model: SeeingModel) -> None:
    chats = {name: chat(*map(part_of, parts)) for name, parts in VIDEO_CHATS.items()}
    if model.name not in FAMILIES_WITH_VIDEOS:
        with pytest.raises(InvalidRequest, match="this model reads text and pictures, no videos"):
            model.prompts([*chats.values()])
        return
    prompts = model.prompts([*chats.values()])
    requests = [request_of(prompt, num_prompt_logprobs=1, max_tokens=8) for prompt in prompts]
    results = run(EngineCore(model.runner), requests)

    expected = GOLDEN_VIDEOS[model.name]
    assert expected.keys() == chats.keys()
    for golden, prompt, request in zip(expected.values(), prompts, requests, strict=True):
        result = results[request.request_id, 0]
        assert reduce(shortened, FEATURE_TOKENS, prompt.text) == golden["text"]
        assert len(prompt.token_ids) == golden["num_tokens"]
        last = [position.sampled.logprob for position in result.prompt_logprobs[-NUM_LAST:]]
        assert last == pytest.approx(golden["logprobs"], abs=1e-4)
        assert result.token_ids == golden["greedy"]
    chunked = EngineCore(Limited(model.runner, 13), prefix_caching=False)
    unscored = request_of(prompts[-1], max_tokens=8)
    assert run_alone(chunked, unscored)[0].token_ids == expected["several"]["greedy"]


@OF_KINDS
def test_a_picture_of_any_size_has_as_many_tokens_as_features(model: SeeingModel) -> None:
    chats = [
        chat(shown(picture(*size), detail), text("What is that?"))
        for size in SIZES
        for detail in ("auto", "low")
    ]
    prompts = model.prompts(chats)

    requests = [request_of(prompt) for prompt in prompts]
    results = run(EngineCore(model.runner), requests)

    for prompt, request in zip(prompts, requests, strict=True):
        [image] = prompt.images
        places = [place for begin, count in image.runs for place in range(begin, begin + count)]
        assert places == np.flatnonzero(np.array(prompt.token_ids) == IMAGE_TOKEN).tolist()
        assert np.isfinite(logprobs_of(results[request.request_id, 0])).all()


@OF_KINDS
def test_another_picture_of_the_same_size_is_answered_otherwise(model: SeeingModel) -> None:
    pictures = [picture(60, 45), picture(60, 45).transpose(Image.Transpose.ROTATE_180)]
    prompts = model.prompts([chat(shown(each), text("What is that?")) for each in pictures])
    first, second = (
        run_alone(EngineCore(model.runner), request_of(prompt))[0] for prompt in prompts
    )

    assert prompts[0].token_ids == prompts[1].token_ids
    assert abs(logprobs_of(first)[0] - logprobs_of(second)[0]) > 1e-4


@OF_KINDS
def test_pictures_between_texts_are_told_apart_and_found_in_the_cache(model: SeeingModel) -> None:
    pictures = [
        picture(90, 40),
        picture(20, 50),
        picture(90, 40).transpose(Image.Transpose.ROTATE_180),
    ]
    begin, middle, lower, end = (
        text(words) for words in ("First", " then ", "\nand below\n", "Which is it?")
    )

    def chat_with(order: Sequence[int]) -> Chat:
        first, second, third = (shown(pictures[number]) for number in order)
        return chat(begin, first, middle, second, lower, third, end)

    asked, swapped = model.prompts([chat_with([0, 1, 2]), chat_with([2, 1, 0])])
    engine = EngineCore(model.runner)
    first, again, other = (
        run_alone(engine, request_of(prompt))[0] for prompt in (asked, asked, swapped)
    )

    assert [image.size for image in asked.images] == [(40, 90), (50, 20), (40, 90)]
    assert asked.token_ids == swapped.token_ids
    assert again.token_ids == first.token_ids
    assert again.final.num_cached_tokens > 0
    assert logprobs_of(again) == pytest.approx(logprobs_of(first), abs=1e-4)
    assert abs(logprobs_of(first)[0] - logprobs_of(other)[0]) > 1e-5
