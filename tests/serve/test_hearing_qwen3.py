"""Servers of Qwen3-ASR and Qwen3-Omni hear, and Qwen3-Omni sees beside it."""

import json
import shutil
from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO

import httpx
import pytest
from PIL import Image

from tests.api.hearing import encode_sound
from tests.backends.hearing_golden import GOLDEN, SOUND_TOKEN
from tests.serve.hearing_files import differ, expect_same_answers, write_tokenizer
from tests.serve.running import RunningServer, serving

ASR_MARKS = ("<|audio_pad|>", "<|audio_start|>", "<|audio_end|>")
# A template with the structure and markup of Qwen3-ASR's template, in our words: system texts, then
# all sounds, and no texts of users.
ASR_TEMPLATE = """
{%- set found = namespace(context='', sounds='') %}
{%- for message in messages %}
    {%- if message.role == 'system' and message.content is string %}
        {%- set found.context = found.context + message.content %}
    {%- elif message.content is not string %}
        {%- for part in message.content %}
            {%- if part.type == 'audio' or 'audio' in part %}
                {%- set found.sounds = found.sounds
                    + '<|audio_start|><|audio_pad|><|audio_end|>' %}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{%- endfor %}
{{- '<|im_start|>system\\n' + found.context + '<|im_end|>\\n' }}
{{- '<|im_start|>user\\n' + found.sounds + '<|im_end|>\\n' }}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""
# A template with the structure and markup of Qwen3-Omni's template, in our words.
OMNI_TEMPLATE = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}{{- message.content }}{%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif part.type == 'audio' %}{{- '<|audio_start|><|audio_pad|><|audio_end|>' }}
            {%- elif 'text' in part %}{{- part.text }}{% endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""
PICTURES = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "patch_size": 4,
    "merge_size": 2,
    "min_pixels": 64,
    "max_pixels": 4096,
}
TURNS = ("<|im_start|>", "<|im_end|>")


@pytest.fixture(scope="module")
def asr_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("models") / "qwen3-asr"
    shutil.copytree(GOLDEN / "qwen3_asr", directory)
    write_tokenizer(directory, ASR_TEMPLATE, TURNS, ASR_MARKS, SOUND_TOKEN)
    with serving(str(directory), cache_dir=directory.parent / "cache") as server:
        yield server


@pytest.fixture(scope="module")
def omni_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("models") / "qwen3-omni"
    shutil.copytree(GOLDEN / "qwen3_omni_moe", directory)
    path = directory / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | PICTURES))
    marks = ("<|image_pad|>", *ASR_MARKS, "<|vision_start|>", "<|vision_end|>")
    write_tokenizer(directory, OMNI_TEMPLATE, TURNS, marks, SOUND_TOKEN - 1)
    with serving(str(directory), cache_dir=directory.parent / "cache") as server:
        yield server


def see(colour: str) -> dict[str, object]:
    file = BytesIO()
    Image.new("RGB", (40, 24), colour).save(file, "PNG")
    url = f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def hear(seconds: float, seed: int) -> dict[str, object]:
    return {"type": "input_audio", "input_audio": {"data": encode_sound(seconds, seed)}}


def test_a_template_of_sounds_alone_is_served(asr_server: RunningServer) -> None:
    system = {"role": "system", "content": "Ouzel"}
    body = {"max_tokens": 4, "temperature": 0, "logprobs": True}
    with httpx.Client(base_url=asr_server.url, timeout=None) as http:
        answers = [
            http.post(
                "chat/completions",
                json=body | {"messages": [*before, {"role": "user", "content": [hear(2.5, seed)]}]},
            ).json()
            for before, seed in (([], 1), ([], 1), ([system], 1), ([], 2))
        ]
        response = http.post(
            "responses",
            json={
                "input": [{"role": "user", "content": [hear(2.5, 1)]}],
                "max_output_tokens": 4,
                "temperature": 0,
            },
        ).json()

    usages = [each["usage"]["prompt_tokens_details"] for each in answers]
    assert [each["audio_tokens"] for each in usages] == [33] * 4
    assert usages[1]["cached_tokens"] >= 32 > usages[3]["cached_tokens"]
    first, again, with_context, other = answers
    expect_same_answers(first, again)
    assert differ(first, with_context)
    assert differ(first, other)
    [message] = response["output"]
    assert message["content"][0]["text"] == first["choices"][0]["message"]["content"]


REFUSED = {
    "a text": ([hear(1, 1), {"type": "text", "text": "Who?"}], "messages[0].content[1].text"),
    "a string": ("Who?", "messages[0].content"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_text_that_the_template_leaves_out_is_refused(
    asr_server: RunningServer, fault: str
) -> None:
    content, path = REFUSED[fault]

    with httpx.Client(base_url=asr_server.url) as http:
        answer = http.post(
            "chat/completions", json={"messages": [{"role": "user", "content": content}]}
        )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == path
    assert "no texts of users" in answer.json()["error"]["message"]


def test_an_answer_that_the_template_leaves_out_is_refused(asr_server: RunningServer) -> None:
    turns = [
        {"role": "user", "content": [hear(1, 1)]},
        {"role": "assistant", "content": "language English"},
    ]

    with httpx.Client(base_url=asr_server.url) as http:
        answer = http.post("chat/completions", json={"messages": turns})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages[1].role"


def test_a_model_sees_and_hears_in_one_chat(omni_server: RunningServer) -> None:
    with httpx.Client(base_url=omni_server.url, timeout=None) as http:
        answers = [
            http.post(
                "chat/completions",
                json={
                    "messages": [{"role": "user", "content": content}],
                    "max_tokens": 4,
                    "temperature": 0,
                    "logprobs": True,
                },
            ).json()
            for content in (
                [see("red"), {"type": "text", "text": "Who?"}, hear(2.5, 1)],
                [see("red"), {"type": "text", "text": "Who?"}, hear(2.5, 1)],
                [see("blue"), {"type": "text", "text": "Who?"}, hear(2.5, 1)],
                [see("red"), {"type": "text", "text": "Who?"}, hear(2.5, 2)],
            )
        ]

    first, again, other_picture, other_sound = answers
    expect_same_answers(first, again)
    assert differ(first, other_picture)
    assert differ(first, other_sound)
    details = [each["usage"]["prompt_tokens_details"] for each in answers]
    assert [each["audio_tokens"] for each in details] == [33] * 4
    assert details[1]["cached_tokens"] > 32 > details[2]["cached_tokens"]


def test_a_video_is_refused(omni_server: RunningServer) -> None:
    part = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}

    with httpx.Client(base_url=omni_server.url) as http:
        answer = http.post(
            "chat/completions", json={"messages": [{"role": "user", "content": [part]}]}
        )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages[0].content[0].type"
