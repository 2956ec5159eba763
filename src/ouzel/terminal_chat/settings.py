"""Settings are fields of the requests: sampling parameters and others that the server knows."""

import re
from collections.abc import Collection
from difflib import get_close_matches

import msgspec

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_error import ChatError

Settings = dict[str, object]

_SETTING = re.compile(r"([^\s=]+)(?:\s*=\s*|\s+)(\S.*)", re.DOTALL)

# Fields that a chat has other ways for, or whose part of the answer it would not show.
_NOT_SET = {
    "messages": "is what you write",
    "model": "is chosen by /model",
    "stream": "is always on",
    "stream_options": "is always as the chat needs it",
    "tools": "is set by /tools",
    "functions": "is set by /tools",
    "response_format": "is set by /schema",
    "n": "must be 1: a chat goes on with one answer",
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
    """Takes `temperature 0.2` or `temperature=0.2`; what is no JSON is text. Raises ChatError."""
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
    """Raises ChatError for a field that a chat has another way for."""
    if name in _NOT_SET:
        raise ChatError(f"{name}: {_NOT_SET[name]}")


def check_name(name: str, known: Collection[str]) -> None:
    """`known` is empty where the server does not say. Raises ChatError."""
    if known and name not in known:
        similar = get_close_matches(name, known, n=1)
        hint = f"; did you mean {similar[0]}?" if similar else ""
        raise ChatError(f"{harmless_line(name)}: the server has no such field{hint}")


def shown(settings: Settings) -> str:
    return "\n".join(
        f"{name} {msgspec.json.encode(value).decode()}" for name, value in settings.items()
    )
