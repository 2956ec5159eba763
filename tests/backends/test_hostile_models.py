"""A start with a hostile model directory ends with one sentence, within seconds and 2 GB."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any  # JSON

import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.backends.hostile import MAX_BYTES

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
Break = Callable[[Path], object]


def merged(name: str, **values: object) -> Break:
    """Returns a function that changes top-level keys of a JSON file."""
    return lambda d: (d / name).write_text(json.dumps(json.loads((d / name).read_text()) | values))


def config(**values: object) -> Break:
    return merged("config.json", **values)


def text(name: str, content: str) -> Break:
    return lambda d: (d / name).write_text(content)


def empty_space(name: str, num_bytes: int) -> Break:
    """Returns a function that extends a file to `num_bytes` without using disk space."""

    def change(directory: Path) -> None:
        with (directory / name).open("a") as file:
            file.truncate(num_bytes)

    return change


def vast_header(directory: Path) -> None:
    (directory / WEIGHTS).write_bytes(struct.pack("<Q", 2**33))
    empty_space(WEIGHTS, 2**34)(directory)


def tensors(**entries: object) -> Break:
    """Returns a function that writes a safetensors file with this header and 64 bytes of data."""
    header = json.dumps(entries).encode()
    return lambda d: (d / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


def tensor(begin: int, end: int, *shape: int, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def shards(name: str) -> Break:
    return text(INDEX, json.dumps({"weight_map": {"model.norm.weight": name}}))


def vocabulary(token_id: int) -> Break:
    def change(directory: Path) -> None:
        path = directory / "tokenizer.json"
        content: dict[str, Any] = json.loads(path.read_text())
        content["model"]["vocab"]["hostile"] = token_id
        path.write_text(json.dumps(content))

    return change


def added_token(token_id: int, content: str = "<hostile>") -> Break:
    token = {"content": content, "special": True, "single_word": False}
    token |= {"lstrip": False, "rstrip": False, "normalized": False, "id": token_id}
    return lambda d: merged(
        "tokenizer.json",
        added_tokens=[*json.loads((d / "tokenizer.json").read_text())["added_tokens"], token],
    )(d)


NAN, INFINITY = float("nan"), float("inf")
YARN = {"rope_type": "yarn", "factor": 4.0}

HOSTILE: dict[str, tuple[Break, str]] = {
    "vocabulary of a trillion": (
        config(vocab_size=10**12),
        "config.json: vocab_size must be <= 4194304, found 1000",
    ),
    "a billion layers": (
        config(num_hidden_layers=10**9),
        "num_hidden_layers must be <= 1024, found 1000000000",
    ),
    "no heads": (
        config(num_attention_heads=0),
        "num_attention_heads must be a positive integer, found 0",
    ),
    "fewer heads than none": (
        config(num_key_value_heads=-2),
        "num_key_value_heads must be a positive integer, found",
    ),
    "half a head": (
        config(num_attention_heads=4.5),
        "num_attention_heads must be an integer, found 4.5",
    ),
    "heads in words": (
        config(num_attention_heads="4"),
        'num_attention_heads must be an integer, found "4"',
    ),
    "wide heads": (config(head_dim=10**9), "head_dim must be <= 8192, found 1000000000"),
    "odd heads": (config(head_dim=63), "config.json: head_dim must be even, found 63"),
    "wide layers": (
        config(hidden_size=10**15),
        "hidden_size must be <= 262144, found 1000000000000000",
    ),
    "endless context": (
        config(max_position_embeddings=10**18),
        "max_position_embeddings must be <= 2147483647",
    ),
    "a number of 5,000 digits": (
        text("config.json", '{"vocab_size": ' + "9" * 5000 + "}"),
        "config.json is not valid",
    ),
    "an integer as a power": (config(vocab_size=1e300), "vocab_size must be <= 4194304, found"),
    "no number as epsilon": (
        config(rms_norm_eps=NAN),
        "config.json: rms_norm_eps must be a number, found NaN",
    ),
    "infinite theta": (
        config(rope_theta=INFINITY),
        "config.json: rope_theta must be a number, found Infinity",
    ),
    "theta below zero": (
        config(rope_theta=-5.0),
        "config.json: rope_theta must be > 0, found -5.0",
    ),
    "theta of one": (
        config(rope_theta=1.0, rope_scaling=YARN),
        "config.json: the rotary positions cannot be computed",
    ),
    "no factor": (
        config(rope_scaling={"type": "linear", "factor": 0}),
        "the rotary positions cannot be computed",
    ),
    "vast factor": (
        config(rope_scaling=YARN | {"factor": 1e20}),
        "the rotary positions must be <= 2147483647",
    ),
    "deep config": (
        text("config.json", '{"a":' * 10**6),
        "config.json is not valid JSON: it is nested too deep",
    ),
    "vast config": (
        empty_space("config.json", 10**12),
        "config.json must have <= 16777216 bytes, it has 10000",
    ),
    "config that never ends": (lambda d: pipe(d / "config.json"), "has no config.json"),
    "vast tokenizer": (
        empty_space("tokenizer.json", 10**12),
        "tokenizer.json must have <= 134217728 bytes",
    ),
    "huge token id": (
        vocabulary(2**40),
        r"tokenizer.json: the ids of its 2\d+ tokens must be >= 0 and < 69\d+, found 1099511627776",
    ),
    "large token id": (
        vocabulary(2**32 - 1),
        r"tokenizer.json: the ids of its \d+ tokens must be >= 0 and < \d+, found 4294967295",
    ),
    "huge added token": (
        added_token(2**22 - 1),
        r"tokenizer.json: the ids of its \d+ tokens must be >= 0 and < \d+, found 4194303",
    ),
    "long control token": (
        added_token(2048, f"<{'x' * 100_000}>"),
        "tokenizer.json: added_tokens: a control token must have <= 256 characters, given 100002",
    ),
    "deep tokenizer": (text("tokenizer.json", '{"a":' * 10**6), "tokenizer.json cannot be read"),
    "list as vocabulary": (
        text("tokenizer.json", '{"model": {"vocab": 5}}'),
        "tokenizer.json cannot be read",
    ),
    "settings of a list": (
        text("tokenizer_config.json", "[]"),
        "tokenizer_config.json must hold a JSON object",
    ),
    "deep settings": (
        text("tokenizer_config.json", "[" * 10**6),
        "tokenizer_config.json is not valid JSON",
    ),
    "infinite temperature": (
        merged("generation_config.json", temperature=INFINITY),
        "temperature must be a number",
    ),
    "no number as penalty": (
        merged("generation_config.json", presence_penalty=NAN),
        "presence_penalty must be a num",
    ),
    "wrong type": (
        merged("generation_config.json", top_k="all"),
        "generation_config.json: Expected `int | null`",
    ),
    "huge end token": (
        merged("generation_config.json", eos_token_id=2**40),
        "eos_token_id must be >= 0 and < 4194304",
    ),
    "vast template": (
        empty_space("chat_template.jinja", 10**12),
        "chat_template.jinja must have <= 1048576 bytes",
    ),
    "wide template": (
        text("chat_template.jinja", "{{ 'x'.ljust(10**10) }}"),
        "chat_template.jinja cannot be used",
    ),
    "endless template": (
        text(
            "chat_template.jinja",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        ),
        "chat_template.jinja cannot be used: the rendering took too long",
    ),
    "header of 2**60": (
        lambda d: (d / WEIGHTS).write_bytes(struct.pack("<Q", 2**60) + b"{}"),
        "is truncated: its 10 bytes end within its header",
    ),
    "vast header": (vast_header, "its header must have <= 33554432 bytes, found 8589934592"),
    "deep header": (
        lambda d: (d / WEIGHTS).write_bytes(struct.pack("<Q", 5_000_000) + b'{"a":' * 10**6),
        "is not a safetensors file",
    ),
    "offsets beyond the file": (
        tensors(a=tensor(0, 2**40, 2**38)),
        "is truncated: it ends at byte 1099511627776",
    ),
    "reversed offsets": (tensors(a=tensor(0, 64, 16), b=tensor(64, 0, 16)), "must begin at byte"),
    "overlapping tensors": (
        tensors(a=tensor(0, 64, 16), b=tensor(0, 64, 16)),
        '"b" must begin at byte 64',
    ),
    "a hole": (
        tensors(a=tensor(0, 16, 4), b=tensor(32, 64, 8)),
        '"b" must begin at byte 16 of the data, found 32',
    ),
    "negative offsets": (
        tensors(a=tensor(-64, 0, 16)),
        "is not a safetensors file: .*Expected `int` >= 0",
    ),
    "a shape that lies": (
        tensors(a=tensor(0, 64, 2**30)),
        r"has 64 bytes, which do not fit its shape \[1073741824\] in F32",
    ),
    "a shape below zero": (tensors(a=tensor(0, 64, -4, -4)), "is not a safetensors file"),
    "bytes of nobody": (
        tensors(a=tensor(0, 32, 8)),
        "its tensors must fill 64 bytes, they fill 32",
    ),
    "an entry without offsets": (
        tensors(a={"dtype": "F32", "shape": [16]}),
        "is not a safetensors file: .*missing",
    ),
    "shard above": (
        shards("../../../etc/passwd"),
        "weight_map must name files of its own directory, found .*passwd",
    ),
    "shard elsewhere": (
        shards("/etc/passwd"),
        "weight_map must name files of its own directory, found",
    ),
    "the directory as a shard": (
        shards(".."),
        "weight_map must name files of its own directory|lacks files that .* names: ",
    ),
    "index of numbers": (
        text(INDEX, '{"weight_map": {"a": 5}}'),
        "index.json cannot be read: .*Expected `str`",
    ),
    "vast index": (
        empty_space(INDEX, 10**12),
        "index.json must have <= 33554432 bytes, found 1000000000000",
    ),
}


def pipe(path: Path) -> None:
    """Replaces the file by a named pipe without a writer, so that reading never ends."""
    path.unlink()
    os.mkfifo(path)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    root = tmp_path_factory.mktemp("hostile")
    directories = []
    for number, (break_it, _) in enumerate(HOSTILE.values()):
        directory = root / str(number)
        shutil.copytree(MODEL_DIRECTORY, directory)
        break_it(directory)
        directories.append(str(directory))
    command = [sys.executable, "-m", "tests.backends.hostile", *directories]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(zip(HOSTILE, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_ends_the_start_with_one_sentence(
    name: str, reports: dict[str, dict[str, Any]]
) -> None:
    report = reports[name]
    assert report["status"] == 0, "it took too long, or crashed"
    assert re.search(HOSTILE[name][1], report["said"]), report["said"]
    assert "\n" not in report["said"]
    assert len(report["said"]) < 1000
    assert report["max_bytes"] < MAX_BYTES
