"""Opens files that a person names."""

import os
from pathlib import Path

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_error import ChatError


def user_path(path: str) -> Path:
    """Expands `~` in a path; `~name` stays unchanged if there is no such user."""
    return Path(os.path.expanduser(path))


def read_bytes(path: str, *, max_bytes: int = -1) -> bytes:
    """Reads a file; the path may begin with `~`. Raises ChatError."""
    try:
        with user_path(path).open("rb") as file:
            return file.read(max_bytes)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ChatError(f"{harmless_line(path)}: cannot be read: {reason}") from error
