"""Reads settings, which are fields of the requests, such as sampling parameters."""

import re
from collections.abc import Collection
from difflib import get_close_matches

import msgspec

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_error import ChatError

Settings = dict[str, object]

_SETTING = re.compile(r"([^\s=]+)(?:\s*=\s*|\s+)(\S.*)", re.DOTALL)

# Fields that a command sets, that are fixed, or that have no effect on the shown answer.
_NOT_SET = {
    "messages": "has the messages that you write; /set cannot change it",
    "model": "is set by /model",
    "stream": "is always true",
    "stream_options": "is set by the program",
    "tools": "is set by /tools",
    "functions": "is set by /tools",
    "response_format": "is set by /schema",
    "input": "has the messages that you write; /set cannot change it",
    "text": "is set by /schema",
    "instructions": "is set by /system",
    "store": "is set by the program",
    "background": "is set by the program",
    "previous_response_id": "is set by the program",
    "conversation": "is set by the program",
    "n": "must be 1: a chat continues with one answer",
    "logprobs": "is not shown in a chat",
    "top_logprobs": "is not shown in a chat",
    "prompt_logprobs": "is not shown in a chat",
}
COMMON = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_output_tokens",
    "max_tool_calls",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "reasoning_effort",
    "chat_template_kwargs",
    "tool_choice",
)


def read_setting(text: str) -> tuple[str, object]:
    """Reads `temperature 0.2` or `temperature=0.2`; a value that is not JSON is a text.

    Raises ChatError.
    """
    match = _SETTING.fullmatch(text.strip())
    if match is None:
        raise ChatError(
            f"/set: must be followed by a name and a value, given {harmless_line(text)!r}"
        )
    name, value_text = match[1], match[2]
    check_settable(name)
    try:
        return name, msgspec.json.decode(value_text)
    except msgspec.DecodeError:
        return name, value_text
    except RecursionError as error:
        raise ChatError(f"{name}: is nested too deep") from error


def check_settable(name: str) -> None:
    """Raises ChatError for a field that /set must not change."""
    if name in _NOT_SET:
        raise ChatError(f"{name}: {_NOT_SET[name]}")


def check_name(name: str, known: Collection[str]) -> None:
    """Raises ChatError for an unknown field; `known` is empty if the server lists no fields."""
    if known and name not in known:
        similar = get_close_matches(name, known, n=1)
        hint = f"; did you mean {similar[0]}?" if similar else ""
        raise ChatError(f"{harmless_line(name)}: the server has no such field{hint}")


def shown(settings: Settings) -> str:
    return "\n".join(
        f"{name} {msgspec.json.encode(value).decode()}" for name, value in settings.items()
    )
