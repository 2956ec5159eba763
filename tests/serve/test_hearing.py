"""A server of a tiny random checkpoint hears sounds, from the model's files to the answer."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.api.hearing import MARKS, TEMPLATE, encode_sound
from tests.backends.hearing_golden import GOLDEN, SOUND_TOKEN
from tests.serve.running import RunningServer, serving

UNUSED = [f"<|unused_{number}|>" for number in range(SOUND_TOKEN - 2)]


def write_tokenizer(directory: Path) -> None:
    """Writes a tokenizer of ASCII in which `<|AUDIO|>` is the token of the sounds.

    The checkpoint has too few tokens for all bytes.
    """
    special = ["<|im_start|>", "<|im_end|>", *UNUSED, *MARKS]
    assert special[SOUND_TOKEN] == "<|AUDIO|>"
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ascii_text = "".join(map(chr, [10, *range(32, 127)]))
    units = "".join(piece for piece, _ in byte_level.pre_tokenize_str(ascii_text))
    vocabulary = {token: number for number, token in enumerate([*special, *units])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"eos_token": "<|im_end|>", "chat_template": TEMPLATE}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("models") / "qwen2-audio"
    shutil.copytree(GOLDEN / "qwen2_audio", directory)
    write_tokenizer(directory)
    with serving(str(directory), cache_dir=directory.parent / "cache") as server:
        yield server


def ask(http: httpx.Client, *sounds: str) -> dict[str, Any]:  # JSON
    parts = [{"type": "input_audio", "input_audio": {"data": each}} for each in sounds]
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
    assert again["choices"] == first["choices"]
    assert other["choices"] != first["choices"]
