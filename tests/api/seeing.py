"""Starts a server whose model reads images, without weights.

The engine repeats the user's message and records the requests that it receives.
"""

import functools
import re
from base64 import b64encode
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.config import MediaConfig, ServerConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from ouzel.prompts.vision.loader import load_video_processor
from ouzel.types.engine_request import EngineRequest
from tests.api.byte_tokens import byte_tokenizer
from tests.api.engines import repeat_user_message
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server
from tests.engine.requests import only_images
from tests.prompts.media.files import saved
from tests.prompts.vision.checkpoints import loaded
from tests.prompts.vision.pictures import picture

MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
ROW_SIDE = 28  # the pixels on each side of the square that becomes one row of features
FILES: dict[str, object] = {
    "config.json": {
        "model_type": "qwen2_vl",
        "vision_config": {"patch_size": 14, "spatial_merge_size": 2},
    },
    "preprocessor_config.json": {
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": ROW_SIDE**2,
    },
}
# A template with the structure and markup of Qwen3-VL's template, in our words.
QWEN_VL = """
{%- macro shown(content) %}
    {%- if content is string %}{{- content }}{%- else %}
        {%- for part in content %}
            {%- if part.type == 'image' %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif part.type == 'video' %}{{- '<|vision_start|><|video_pad|><|vision_end|>' }}
            {%- elif 'text' in part %}{{- part.text }}{% endif %}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- if tools %}
    {{- '<|im_start|>system\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{% endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' }}
        {{- shown(message.content) }}{{- '\\n</tool_response>' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' }}{{- shown(message.content) }}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""
_TOKENIZER = byte_tokenizer(*MARKS)
_received_requests: list[EngineRequest] = []

Size = tuple[int, int]  # height and width


def create_seeing_parrot(options: dict[str, object]) -> FakeEngine:
    """Makes an engine that appends each request to `_received_requests`.

    It needs `in_thread=True`.
    """
    return FakeEngine(msgspec.convert(options, FakeOptions), repeat_and_record)


def repeat_and_record(request: EngineRequest, position: int) -> int:
    if position == 0:
        _received_requests.append(request)
    return repeat_user_message(request, position)


def seeing_server(
    directory: Path,
    *,
    max_model_len: int = 4096,
    config: ServerConfig | None = None,
    media: MediaConfig | None = None,
    store_url: str | None = None,
    further: tuple[ServerSetup, ...] = (),
) -> AbstractContextManager[RunningServer]:
    """Starts a server; writes the model's small files into the empty `directory`."""
    image_processor = loaded(directory, FILES)
    return running_server(
        {"max_model_len": max_model_len},
        config=config or ServerConfig(),
        tokenizer=_TOKENIZER,
        engine_factory="tests.api.seeing:create_seeing_parrot",
        chat_template=QWEN_VL,
        output_format=OutputFormat(calls=HERMES),
        store_url=store_url,
        image_processor=image_processor,
        video_processor=load_video_processor(directory),
        media=media or MediaConfig(),
        further=further,
    )


@functools.cache
def encode_base64(height: int, width: int) -> str:
    return b64encode(saved(picture(width, height), "PNG")).decode()


def data_url(height: int, width: int) -> str:
    return f"data:image/png;base64,{encode_base64(height, width)}"


def last_request() -> EngineRequest:
    """Returns the newest request; checks that its images are at the places of its image tokens."""
    request = _received_requests[-1]
    feature_ids = [_TOKENIZER.control_tokens[token] for token in ("<|image_pad|>", "<|video_pad|>")]
    places = [at for at, token_id in enumerate(request.prompt_token_ids) if token_id in feature_ids]
    assert places == [
        first + at for image in request.images for first, num in image.runs for at in range(num)
    ]
    for image in only_images(request.images):
        num_tiles, height, width = image.shape
        num_rows = sum(num for _, num in image.runs)
        assert num_tiles in (1, 2) and num_rows == height * width // ROW_SIDE**2
        assert len(image.pixels) == num_tiles * height * width * 3
    return request


def sizes_seen() -> list[Size]:
    """Returns the sizes of the images in the newest request, in the order of their tokens."""
    return [image.size for image in only_images(last_request().images)]


def last_prompt() -> str:
    """Returns the text of the newest prompt.

    The tokens of each image are replaced by their number, as in "<picture of 12>".
    """
    text = _TOKENIZER.decode(last_request().prompt_token_ids, skip_special_tokens=False)
    pattern = r"<\|vision_start\|>((?:<\|(image|video)_pad\|>)+)<\|vision_end\|>"
    kinds = {"image": "picture", "video": "video"}
    return re.sub(pattern, lambda found: f"<{kinds[found[2]]} of {found[1].count('>')}>", text)
