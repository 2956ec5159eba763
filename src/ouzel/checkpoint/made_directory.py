"""Stores model directories that are made from a file of another format: links to the files of
weights, and the small files of a Hugging Face repository.

A note in the directory names the source. A directory whose note differs is made again.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ouzel.checkpoint.model_files import JsonObject

SmallFile = JsonObject | list[JsonObject]

SOURCE_FILE = "made_of.json"


def matches_source(directory: Path, source: JsonObject) -> bool:
    """Tells whether the directory exists and was made of this source."""
    try:
        return bool(json.loads((directory / SOURCE_FILE).read_bytes()) == source)
    except (OSError, ValueError):
        return False


def mark_used(directory: Path) -> None:
    """Sets the time of the last use, which `ouzel list` shows."""
    with suppress(OSError):
        os.utime(directory / SOURCE_FILE)


def store_directory(
    directory: Path,
    contents: Mapping[str, SmallFile],
    links: Mapping[str, Path],
    source: JsonObject,
) -> None:
    """Writes the files and links by their names in the directory, all or none of them.

    Raises OSError.
    """
    root = directory.parent
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=root) as unfinished:
        made, outdated = Path(unfinished, "made"), Path(unfinished, "outdated")
        _write(made, {**contents, SOURCE_FILE: source}, links)
        _put_in_place(made, directory, outdated, source)


def _put_in_place(made: Path, directory: Path, outdated: Path, source: JsonObject) -> None:
    """Renames `made` to `directory`, unless another process has already made it: it may be in
    use.
    """
    with suppress(OSError):  # rename replaces an empty directory, and fails for any other
        made.rename(directory)
    if not matches_source(directory, source):
        with suppress(FileNotFoundError):
            directory.rename(outdated)
        try:
            made.rename(directory)
        except OSError:
            if not matches_source(directory, source):
                raise


def _write(directory: Path, contents: Mapping[str, SmallFile], links: Mapping[str, Path]) -> None:
    directory.mkdir()
    for name, content in contents.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    for name, file in links.items():
        os.symlink(file, directory / name)
