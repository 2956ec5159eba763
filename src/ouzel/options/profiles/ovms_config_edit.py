"""Edits OpenVINO Model Server's `config.json` for `--add_to_config` and `--remove_from_config`.

A running server reads the file again when it changes, so the file is replaced at once. All other
keys and entries stay. Commands that edit files of one directory wait for each other, so that no
edit is lost.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # JSON

import msgspec

from ouzel.options.invalid_option import InvalidOption

CONFIG_FILE = "config.json"
_LIST, _OLD_LIST = "model_config_list", "mediapipe_config_list"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The fields of a new entry of the file."""

    name: str
    base_path: str
    settings: Mapping[str, object] = field(default_factory=dict)  # further keys of the entry


def add_to_config(path: Path, entry: ConfigEntry) -> str:
    """Adds an entry to the file, which may not exist yet; returns the line for the terminal.

    Raises InvalidOption.
    """
    with _alone(path, "--add_to_config"):
        content = _read(path) if path.exists() else {}
        if entry.name in _names(content, path):
            raise InvalidOption(
                f"--add_to_config {path}: could not add {entry.name}: a model with the same name "
                "already exists"
            )
        config = {"name": entry.name, "base_path": entry.base_path, **entry.settings}
        content.setdefault(_LIST, []).append({"config": config})
        _write(path, content, "--add_to_config")
    return f"Config updated: {path}"


def remove_from_config(path: Path, name: str) -> str:
    """Removes an entry; returns the line for the terminal. Raises InvalidOption without one."""
    if not path.exists():
        raise InvalidOption(f"--remove_from_config {path}: there is no such file")
    with _alone(path, "--remove_from_config"):
        content = _read(path)
        if name not in _names(content, path):
            raise InvalidOption(
                f"--remove_from_config {path}: the file has no model with the name {name}"
            )
        for key in (_LIST, _OLD_LIST):
            if key in content:
                content[key] = [item for item in content[key] if _read_name(item) != name]
        _write(path, content, "--remove_from_config")
    return f"Config updated: {path}"


def base_path_in(repository: Path, name: str, config_path: Path) -> str:
    """Returns the model's directory for the file: relative if it is below the file's directory."""
    directory, home = os.path.abspath(repository / name), os.path.abspath(config_path.parent)
    is_below = os.path.commonpath([directory, home]) == home
    return os.path.relpath(directory, home) if is_below else directory


@contextmanager
def _alone(path: Path, flag: str) -> Iterator[None]:
    """Locks the directory of the file against other commands, and creates it if it is missing."""
    target = _target(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InvalidOption(
            f"{flag} {path}: the file cannot be written: {error.strerror}"
        ) from error
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _read(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():
        raise InvalidOption(f"{path}: must be an ordinary file")
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise InvalidOption(f"{path}: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidOption(f"{path}: must be a JSON object: {error}") from error


def _names(content: Mapping[str, Any], path: Path) -> list[str]:
    for key in (_LIST, _OLD_LIST):
        if not isinstance(content.get(key, []), list):
            raise InvalidOption(f"{path}: {key}: must be a list")
    return [_read_name(item) for key in (_LIST, _OLD_LIST) for item in content.get(key, [])]


def _read_name(item: object) -> str:
    """Returns the model's name in an entry of the configuration file, or an empty text."""
    fields = item.get("config", item) if isinstance(item, dict) else {}
    return str(fields.get("name", "")) if isinstance(fields, dict) else ""


def _write(path: Path, content: Mapping[str, Any], flag: str) -> None:
    text = msgspec.json.format(msgspec.json.encode(content), indent=4) + b"\n"
    target = _target(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(text)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InvalidOption(
            f"{flag} {path}: the file cannot be written: {error.strerror}"
        ) from error


def _target(path: Path) -> Path:
    """Returns the target of a link, which is replaced so that the link itself stays."""
    return Path(os.path.realpath(path))
