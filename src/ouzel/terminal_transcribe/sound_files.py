"""Reads the sound files of a command line, and names their outputs."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ouzel.errors import OuzelError
from ouzel.options.invalid_option import InvalidOption

STDIN = "-"


class UnreadableFile(OuzelError):
    """A file cannot be read; the message tells people the reason."""


@dataclass(frozen=True, slots=True)
class SoundFile:
    name: str  # the argument of the command
    num_bytes: int
    output: Path | None  # None: standard output
    content: bytes | None = None  # None: it is read when its turn comes

    @property
    def filename(self) -> str:
        return "stdin" if self.name == STDIN else Path(self.name).name

    async def read(self) -> bytes:
        """Returns the bytes of the file. Raises UnreadableFile."""
        if self.content is not None:
            return self.content
        try:
            return await asyncio.to_thread(Path(self.name).read_bytes)
        except OSError as error:
            raise UnreadableFile(_describe(error)) from error


def find_sound(name: str, output: Path | None) -> SoundFile:
    """Finds a file, and reads standard input to its end. Raises UnreadableFile."""
    if name == STDIN:
        # The read would hold up Ctrl-C in a thread of the event loop.
        content = sys.stdin.buffer.read()
        return SoundFile(name, len(content), output, content)
    path = Path(name)
    try:
        if path.is_dir():
            raise UnreadableFile("is a directory, not a sound file")
        return SoundFile(name, path.stat().st_size, output)
    except OSError as error:
        raise UnreadableFile(_describe(error)) from error


def name_outputs(names: Sequence[str], directory: str, ending: str) -> list[Path] | list[None]:
    """Returns the path of each file's output in the directory; without one, None for each.

    The directory is made if it is missing. Raises InvalidOption.
    """
    if not directory:
        return [None] * len(names)
    outputs: dict[Path, str] = {}
    for name in names:
        stem = "stdin" if name == STDIN else Path(name).stem
        path = Path(directory, f"{stem}{ending}")
        if path in outputs:
            raise InvalidOption(f"{outputs[path]} and {name} would both be written to {path}")
        outputs[path] = name
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise InvalidOption(f"--output-dir {directory}: {error.strerror}") from error
    return list(outputs)


def write_file(path: Path, content: str) -> None:
    """Writes a file; Ctrl-C and a crash leave the old file or none. Raises InvalidOption."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(content, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise InvalidOption(f"{path}: the file cannot be written: {error.strerror}") from error


def _describe(error: OSError) -> str:
    return f"the file cannot be read: {error.strerror}"
