"""Reads the prompts of --dataset, a file with a JSON object in each line."""

import codecs
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any  # JSON

import msgspec

from ouzel.bench.conversation import Conversation, Turn, user_turn
from ouzel.client.base import UNREADABLE
from ouzel.errors import OuzelError


class InvalidDataset(OuzelError):
    """The file cannot be read, or a line has no prompt; the message names file and line."""


class Line(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A line: `prompt` or `messages`, and optionally `output_tokens` (vLLM) or `max_tokens`."""

    prompt: str = ""
    messages: list[dict[str, Any]] = []
    output_tokens: int | None = None
    max_tokens: int | None = None


def read_dataset(path: Path) -> list[Line]:
    """Reads the lines that are not empty. Raises InvalidDataset."""
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InvalidDataset(f"{path}: {error.strerror}") from error
    lines = [
        _read(line, f"{path}, line {number}")
        for number, line in enumerate(content.split(b"\n"), 1)
        if line.strip()
    ]
    if not lines:
        raise InvalidDataset(f"{path}: has no prompts")
    return lines


def _read(content: bytes, place: str) -> Line:
    try:
        line = msgspec.json.decode(content, type=Line)
    except UNREADABLE as error:
        raise InvalidDataset(f"{place}: {error}") from error
    if bool(line.prompt) == bool(line.messages):
        raise InvalidDataset(f"{place}: must have either prompt or messages, and not empty")
    if line.output_tokens is not None and line.max_tokens is not None:
        raise InvalidDataset(f"{place}: has both output_tokens and max_tokens, which mean the same")
    if (num_tokens := _answer_len(line)) is not None and num_tokens < 1:
        raise InvalidDataset(f"{place}: the length of an answer must be >= 1, given {num_tokens}")
    return line


def read_conversations(
    lines: Sequence[Line], output_lens: Sequence[int], *, start: int = 0
) -> list[Conversation]:
    """Makes a conversation for each of `output_lens`, from the lines from `start` on.

    After the last line the first line follows. The length in the line itself has precedence.
    """
    pairs = (
        (lines[(start + number) % len(lines)], num_tokens)
        for number, num_tokens in enumerate(output_lens)
    )
    return [Conversation((_turn(line, num_tokens),)) for line, num_tokens in pairs]


def _turn(line: Line, output_len: int) -> Turn:
    max_tokens = _answer_len(line) or output_len
    if line.prompt:
        return user_turn(line.prompt, max_tokens=max_tokens, input_len=0)
    messages: tuple[Mapping[str, Any], ...] = tuple(line.messages)
    return Turn(messages, max_tokens, 0)


def _answer_len(line: Line) -> int | None:
    return line.max_tokens if line.output_tokens is None else line.output_tokens
