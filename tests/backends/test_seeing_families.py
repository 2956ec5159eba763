"""Compares chats with images and videos, from messages to logprobs, with transformers.

The model directories have all files of published ones. The image processor runs beside the server's
event loop, and the vision encoder in the engine; the chat template and the tokenizer are between
them. These tests show that all of them agree about each image.
"""

import asyncio
import base64
import json
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import groupby
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
from ouzel.prompts.prompt import Prompt
from ouzel.prompts.render import PromptRenderer
from ouzel.prompts.vision.loader import load_image_processor, load_video_processor
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.worker_threads import WorkerThreads
from tests.backends import of_kinds
from tests.backends.conftest import Load, skip_without_kernels
from tests.backends.seeing_chats import GOLDEN_CHATS, NUM_LAST, shortened
from tests.backends.seeing_families import FAMILIES, IMAGE_TOKEN
from tests.backends.seeing_family import GOLDEN
from tests.backends.seeing_videos import FAMILIES_WITH_VIDEOS, FEATURE_TOKENS, VIDEO_CHATS, Film
from tests.backends.vision_golden import KINDS, LimitedRunner
from tests.engine.requests import Result, make_request, only_images, run, run_alone
from tests.prompts.media.files import saved
from tests.prompts.vision.pictures import picture

# The expected values of each family and chat.
GOLDEN_ANSWERS: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (GOLDEN.parent / "golden_seeing.json").read_text()
)
GOLDEN_VIDEOS: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (GOLDEN.parent / "golden_seeing_videos.json").read_text()
)

# Width and height: landscape, portrait, smaller than a patch, larger than any tile, and the
# longest sides allowed.
SIZES = [(90, 40), (30, 75), (1, 1), (130, 127), (200, 1), (2, 300)]
Part = dict[str, object]
Chat = list[dict[str, object]]


OF_KINDS = pytest.mark.parametrize(
    "model", of_kinds("chats with pictures of further families", [*FAMILIES], KINDS), indirect=True
)


def make_text(words: str) -> Part:
    return {"type": "text", "text": words}


def make_image(image: Image.Image, detail: str = "auto") -> Part:
    url = encode_url(saved(image, "PNG"))
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def make_video(film: Film) -> Part:
    frames = film.frames()
    if not film.is_file:
        urls = [encode_url(saved(frame, "PNG")) for frame in frames]
        return {"type": "video", "video": urls, "fps": film.fps}
    file = saved(
        frames[0], "PNG", save_all=True, append_images=frames[1:], duration=1000 / film.fps
    )
    return {"type": "video_url", "video_url": {"url": encode_url(file)}}


def encode_url(file: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(file).decode()


def make_part(part: str | tuple[int, int] | Film) -> Part:
    """Makes a text, an image of this width and height, or a video."""
    match part:
        case str():
            return make_text(part)
        case Film():
            return make_video(part)
        case _:
            return make_image(picture(*part))


def make_chat(*parts: Part) -> Chat:
    return [{"role": "user", "content": list(parts)}]


class Rendering:
    """An event loop and a process that decodes images, for the chats of all models.

    They live as long as the session, because the start of the process takes 0.2 s of CPU.
    """

    def __init__(self) -> None:
        self.loader = MediaLoader(MediaConfig())  # belongs to the event loop
        self.renderers: list[PromptRenderer] = []  # use the loader
        self._loop = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._threads = WorkerThreads("chats", 1)

    def render(self, renderer: PromptRenderer, chats: Sequence[Chat]) -> list[Prompt]:
        return self._loop.run(self._render(renderer, chats))

    async def _render(self, renderer: PromptRenderer, chats: Sequence[Chat]) -> list[Prompt]:
        return [await self._threads.run(partial(renderer.render_chat, each)) for each in chats]

    def close(self) -> None:
        self._threads.close()
        for renderer in self.renderers:
            renderer.close()
        self._loop.close()


class SeeingModel:
    """A model of a family, with a renderer of its chats."""

    def __init__(
        self, name: str, directory: Path, runner: ModelRunner, rendering: Rendering
    ) -> None:
        """`name` is a key of FAMILIES."""
        self.name = name
        self.runner = runner
        processor = load_image_processor(directory)
        assert processor is not None
        self.feature_token = processor.feature_token
        info, tokenizer = runner.info, load_tokenizer(directory)
        assert tokenizer.control_tokens[self.feature_token] == IMAGE_TOKEN
        videos = load_video_processor(directory)
        images = ImageReader(processor, rendering.loader, info.max_model_len, videos)
        template = ChatTemplate.load(directory)
        self._renderer = PromptRenderer(
            tokenizer, template, info.max_model_len, info.vocab_size, images=images
        )
        self._rendering = rendering
        rendering.renderers.append(self._renderer)

    def render(self, chats: Sequence[Chat]) -> list[Prompt]:
        return self._rendering.render(self._renderer, chats)


# Any: the fields of make_request
def make_image_request(prompt: Prompt, max_tokens: int = 4, **params: Any) -> EngineRequest:
    request = make_request(prompt.token_ids, max_tokens=max_tokens, num_logprobs=0, **params)
    return msgspec.structs.replace(request, images=prompt.images)


def list_logprobs(result: Result) -> list[float]:
    assert result.finish_reason == "length"
    return [position.sampled.logprob for position in result.logprobs]


@pytest.fixture(scope="session")
def rendering() -> Iterator[Rendering]:
    rendering = Rendering()
    yield rendering
    rendering.close()


@pytest.fixture(scope="module", params=FAMILIES)
def model(
    request: pytest.FixtureRequest,
    load: Load,
    rendering: Rendering,
    tmp_path_factory: pytest.TempPathFactory,
) -> SeeingModel:
    """Loads the golden checkpoint itself, unless the family changes its configuration.

    So other files may share the loaded model.
    """
    family = FAMILIES[request.param]
    skip_without_kernels(family.checkpoint)
    directory = family.write(tmp_path_factory.mktemp("model"))
    runner = load(directory if family.text_config else GOLDEN / family.checkpoint)
    return SeeingModel(request.param, directory, runner, rendering)


def test_every_checkpoint_with_an_encoder_has_a_family() -> None:
    assert {family.checkpoint for family in FAMILIES.values()} == {
        path.name for path in GOLDEN.iterdir()
    }
    assert FAMILIES.keys() == GOLDEN_ANSWERS.keys()


@OF_KINDS
def test_chats_with_images_have_the_logprobs_of_transformers(model: SeeingModel) -> None:
    expected = GOLDEN_ANSWERS[model.name]
    prompts = model.render([make_chat(*map(make_part, parts)) for parts in GOLDEN_CHATS.values()])
    # no prompt whose tokens see each other has logprobs
    num_scored = 0 if model.runner.info.attends_to_whole_prompts else NUM_LAST
    num_prompt_logprobs = 1 if num_scored else None
    requests = [
        make_image_request(prompt, num_prompt_logprobs=num_prompt_logprobs) for prompt in prompts
    ]
    results = run(EngineCore(model.runner), requests)

    assert expected.keys() == GOLDEN_CHATS.keys()
    for golden, prompt, request in zip(expected.values(), prompts, requests, strict=True):
        result = results[request.request_id, 0]
        assert shortened(prompt.text, model.feature_token) == golden["text"]
        assert len(prompt.token_ids) == golden["num_tokens"]
        last = [position.sampled.logprob for position in result.prompt_logprobs[-NUM_LAST:]]
        assert last == pytest.approx(golden["logprobs"][:num_scored], abs=1e-4)
        assert result.token_ids[0] == golden["next_token_id"]
        assert list_logprobs(result)[0] == pytest.approx(golden["next_logprob"], abs=1e-4)


@pytest.mark.parametrize(
    "model",
    of_kinds("chats with videos of further families", [*FAMILIES], [*KINDS, "internvl"]),
    indirect=True,
)
def test_chats_with_videos_have_the_logprobs_of_transformers(model: SeeingModel) -> None:
    chats = {name: make_chat(*map(make_part, parts)) for name, parts in VIDEO_CHATS.items()}
    if model.name not in FAMILIES_WITH_VIDEOS:
        with pytest.raises(InvalidRequest, match="this model reads text and pictures, no videos"):
            model.render([*chats.values()])
        return
    prompts = model.render([*chats.values()])
    requests = [
        make_image_request(prompt, num_prompt_logprobs=1, max_tokens=8) for prompt in prompts
    ]
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
    chunked = EngineCore(LimitedRunner(model.runner, 13), prefix_caching=False)
    unscored = make_image_request(prompts[-1], max_tokens=8)
    assert run_alone(chunked, unscored)[0].token_ids == expected["several"]["greedy"]


@OF_KINDS
def test_an_image_of_any_size_has_as_many_tokens_as_features(model: SeeingModel) -> None:
    chats = [
        make_chat(make_image(picture(*size), detail), make_text("What is that?"))
        for size in SIZES
        for detail in ("auto", "low")
    ]
    prompts = model.render(chats)

    requests = [make_image_request(prompt) for prompt in prompts]
    results = run(EngineCore(model.runner), requests)

    for prompt, request in zip(prompts, requests, strict=True):
        runs = [run for image in prompt.images for run in image.runs]  # an image or its pieces
        places = [place for begin, count in runs for place in range(begin, begin + count)]
        assert places == np.flatnonzero(np.array(prompt.token_ids) == IMAGE_TOKEN).tolist()
        assert np.isfinite(list_logprobs(results[request.request_id, 0])).all()


@OF_KINDS
def test_another_image_of_the_same_size_gives_other_logprobs(model: SeeingModel) -> None:
    images = [picture(60, 45), picture(60, 45).transpose(Image.Transpose.ROTATE_180)]
    prompts = model.render(
        [make_chat(make_image(each), make_text("What is that?")) for each in images]
    )
    first, second = (
        run_alone(EngineCore(model.runner), make_image_request(prompt))[0] for prompt in prompts
    )

    assert prompts[0].token_ids == prompts[1].token_ids
    assert abs(list_logprobs(first)[0] - list_logprobs(second)[0]) > 1e-4


@OF_KINDS
def test_images_between_texts_keep_their_order_and_are_found_in_the_cache(
    model: SeeingModel,
) -> None:
    images = [
        picture(90, 40),
        picture(20, 50),
        picture(90, 40).transpose(Image.Transpose.ROTATE_180),
    ]
    begin, middle, lower, end = (
        make_text(words) for words in ("First", " then ", "\nand below\n", "Which is it?")
    )

    def chat_with(order: Sequence[int]) -> Chat:
        first, second, third = (make_image(images[number]) for number in order)
        return make_chat(begin, first, middle, second, lower, third, end)

    in_order, swapped = model.render([chat_with([0, 1, 2]), chat_with([2, 1, 0])])
    engine = EngineCore(model.runner)
    first, again, other = (
        run_alone(engine, make_image_request(prompt))[0] for prompt in (in_order, in_order, swapped)
    )

    sizes = [size for size, _ in groupby(image.size for image in only_images(in_order.images))]
    assert sizes == [(40, 90), (50, 20), (40, 90)]
    assert in_order.token_ids == swapped.token_ids
    assert again.token_ids == first.token_ids
    assert again.final.num_cached_tokens > 0
    assert list_logprobs(again) == pytest.approx(list_logprobs(first), abs=1e-4)
    assert abs(list_logprobs(first)[0] - list_logprobs(other)[0]) > 1e-5
