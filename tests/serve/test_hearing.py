"""A server of a tiny random checkpoint hears sounds, from the model's files to the answer."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.hearing import MARKS, TEMPLATE, encode_sound
from tests.backends.hearing_golden import GOLDEN, SOUND_TOKEN
from tests.serve.drawings import data_url, encoded, shape
from tests.serve.hearing_files import (
    differ,
    expect_same_answers,
    read_logprobs,
    write_tokenizer,
)
from tests.serve.running import RunningServer, serving

# A template with the markup of Gemma 4's template, in our words.
GEMMA4_TEMPLATE = """
{%- for message in messages %}
    {{- '<|turn>' + message.role + '\\n' }}
    {%- if message.content is string %}{{- message.content }}{%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'text' %}{{- part.text }}
            {%- elif part.type == 'image' %}{{- '<|image|>' }}
            {%- elif part.type == 'audio' %}{{- '<|audio|>' }}{% endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<turn|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|turn>model\\n' }}{% endif %}
"""
GEMMA4_MARKS = ("<|image|>", "<|audio|>", "<|image>", "<image|>", "<|audio>", "<audio|>")
IMAGE_PROCESSOR = {
    "image_processor_type": "Gemma4ImageProcessor",
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "max_soft_tokens": 70,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("models") / "qwen2-audio"
    shutil.copytree(GOLDEN / "qwen2_audio", directory)
    turns = ("<|im_start|>", "<|im_end|>")
    write_tokenizer(directory, TEMPLATE, turns, MARKS, SOUND_TOKEN)
    with serving(str(directory), cache_dir=directory.parent / "cache") as server:
        yield server


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("models") / "gemma4"
    shutil.copytree(GOLDEN / "gemma4", directory)
    write_tokenizer(
        directory, GEMMA4_TEMPLATE, ("<|turn>", "<turn|>"), GEMMA4_MARKS, SOUND_TOKEN - 1
    )
    extractor = json.loads((directory / "preprocessor_config.json").read_text())
    (directory / "preprocessor_config.json").unlink()
    processor = {"feature_extractor": extractor, "image_processor": IMAGE_PROCESSOR}
    (directory / "processor_config.json").write_text(json.dumps(processor))
    store_url = f"sqlite:///{directory.parent / 'responses.sqlite3'}"
    cache_dir = directory.parent / "cache"
    with serving(str(directory), "--store-url", store_url, cache_dir=cache_dir) as server:
        yield server


def heard(sound: str) -> dict[str, Any]:  # JSON
    return {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}}


def seen(color: str) -> dict[str, Any]:  # JSON
    url = data_url(encoded(shape("circle", color, (48, 36)), "PNG"))
    return {"type": "image_url", "image_url": {"url": url}}


def ask(http: httpx.Client, *sounds: str) -> dict[str, Any]:  # JSON
    return ask_about(http, *(heard(each) for each in sounds))


def ask_about(http: httpx.Client, *parts: dict[str, Any]) -> dict[str, Any]:  # JSON
    content = [*parts, {"type": "text", "text": "Who?"}]
    body = {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 4,
        "temperature": 0,
        "logprobs": True,
    }
    answer = http.post("chat/completions", json=body, timeout=None)
    assert answer.status_code == 200, answer.text
    answered: dict[str, Any] = answer.json()
    return answered


def test_sounds_are_heard_and_cached(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url) as http:
        first, again, other = (
            ask(http, encode_sound(1, seed), encode_sound(0.5, 9)) for seed in (1, 1, 2)
        )

    usages = [answer["usage"] for answer in (first, again, other)]
    assert [each["prompt_tokens_details"]["audio_tokens"] for each in usages] == [37] * 3
    cached = [each["prompt_tokens_details"]["cached_tokens"] for each in usages]
    assert cached[1] > 37 > cached[2]
    expect_same_answers(first, again)
    assert differ(first, other)


def test_gemma_hears_and_sees_in_one_chat(gemma: RunningServer) -> None:
    bark, howl = heard(encode_sound(1, 1)), heard(encode_sound(1, 2))
    with httpx.Client(base_url=gemma.url) as http:
        first, again, other_sound, other_picture, other_order, sound_alone = (
            ask_about(http, *parts)
            for parts in (
                (seen("red"), bark),
                (seen("red"), bark),
                (seen("red"), howl),
                (seen("blue"), bark),
                (bark, seen("red")),
                (bark,),
            )
        )

    details = [
        answer["usage"]["prompt_tokens_details"]
        for answer in (first, again, other_sound, other_picture, other_order, sound_alone)
    ]
    # a frame begins every 10 ms; 48 x 36 pixels become 9 squares of 12 x 12 in each of 7 rows
    assert [each["audio_tokens"] for each in details] == [25] * 6
    assert [each.get("image_tokens") for each in details] == [63] * 5 + [None]
    expect_same_answers(first, again)
    cached = [each["cached_tokens"] for each in details]
    assert cached[1] > 63 + 25 > cached[2] >= 63 > cached[3]
    others = (first, other_sound, other_picture, other_order)
    assert len({round(read_logprobs(answer)[0], 3) for answer in others}) == 4


def test_gemma_hears_in_responses(gemma: RunningServer) -> None:
    parts = [
        heard(encode_sound(1, 1)),
        {"type": "input_image", "image_url": seen("red")["image_url"]["url"]},
        {"type": "input_text", "text": "Who?"},
    ]
    body = {
        "input": [{"role": "user", "content": parts}],
        "max_output_tokens": 16,
        "temperature": 0,
    }
    with httpx.Client(base_url=gemma.url) as http:
        response = http.post("responses", json=body, timeout=None)
        chat = ask_about(http, heard(encode_sound(1, 1)), seen("red"))

    assert response.status_code == 200, response.text
    made = response.json()
    [message] = made["output"]
    assert message["content"][0]["text"].startswith(chat["choices"][0]["message"]["content"])
    assert made["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"]
    assert chat["usage"]["prompt_tokens_details"]["cached_tokens"] > 63 + 25


def test_gemma_refuses_a_sound_over_half_a_minute(gemma: RunningServer) -> None:
    content = [seen("red"), heard(encode_sound(30.1))]
    with httpx.Client(base_url=gemma.url) as http:
        answer = http.post(
            "chat/completions", json={"messages": [{"role": "user", "content": content}]}
        )

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == "messages[0].content[1].input_audio.data"
    assert "a sound must last <= 30 s, given 30.10 s" in error["message"]


def test_gemma_is_listed_with_its_inputs(gemma: RunningServer) -> None:
    with httpx.Client(base_url=gemma.url) as http:
        [model, *_] = http.get("models").json()["data"]

    assert model["architecture"]["input_modalities"][:3] == ["text", "image", "audio"]
    assert {"vision", "hearing"} <= set(model["capabilities"])
