"""Reads API keys from options, a file and the environment; no message contains a key."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ouzel.config import API_KEY_PATTERN, ServerConfig
from ouzel.options.invalid_option import InvalidOption

_PLAIN_VARIABLE = "API_KEY"  # the variable of OpenVINO Model Server; it holds one key


def with_all_keys(config: ServerConfig, environment: Mapping[str, str]) -> ServerConfig:
    """Adds the keys of the file, or of API_KEY if there are no others.

    Raises InvalidOption.
    """
    keys = config.api_key
    if config.api_key_file:
        keys += _read_keys(Path(config.api_key_file))
    elif not keys and environment.get(_PLAIN_VARIABLE):
        keys = (_checked(environment[_PLAIN_VARIABLE].strip(), _PLAIN_VARIABLE),)
    return msgspec.structs.replace(config, api_key=keys)


def _read_keys(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        # `from None`: the cause would show bytes of the file.
        raise InvalidOption(f"--api-key-file {path}: {reason}") from None
    keys = tuple(
        _checked(line.strip(), f"--api-key-file {path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not keys:
        raise InvalidOption(f"--api-key-file {path}: holds no key")
    return keys


def _checked(key: str, origin: str) -> str:
    if not re.fullmatch(API_KEY_PATTERN, key):
        raise InvalidOption(f"{origin}: a key must be printable ASCII without spaces")
    return key
