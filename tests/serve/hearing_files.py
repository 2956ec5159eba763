"""Writes the tokenizers of checkpoints that hear, and compares their answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def write_tokenizer(
    directory: Path, template: str, turns: tuple[str, str], marks: tuple[str, ...], first: int
) -> None:
    """Writes a tokenizer of ASCII in which `marks` begin with the token `first`.

    The checkpoints have too few tokens for all bytes.
    """
    unused = [f"<|unused_{number}|>" for number in range(first - len(turns))]
    special = [*turns, *unused, *marks]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ascii_text = "".join(map(chr, [10, *range(32, 127)]))
    units = "".join(piece for piece, _ in byte_level.pre_tokenize_str(ascii_text))
    vocabulary = {token: number for number, token in enumerate([*special, *units])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"eos_token": turns[1], "chat_template": template}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def read_logprobs(answer: dict[str, Any]) -> list[float]:  # JSON
    return [each["logprob"] for each in answer["choices"][0]["logprobs"]["content"]]


def expect_same_answers(first: dict[str, Any], again: dict[str, Any]) -> None:  # JSON
    """Compares two answers. Rows of a step with cached tokens may be rounded differently."""
    (one,), (two,) = first["choices"], again["choices"]
    assert one["message"] == two["message"]
    assert read_logprobs(first) == pytest.approx(read_logprobs(again), abs=1e-4)


def differ(first: dict[str, Any], other: dict[str, Any]) -> bool:  # JSON
    """Tells whether two answers differ by more than rounding."""
    return read_logprobs(first) != pytest.approx(read_logprobs(other), abs=1e-3)
