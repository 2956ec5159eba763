"""Runs flags of OVMS that ask for an action: a pull, a graph, an edit of `config.json`.

The action of a flag is its directive. It is read with the command line, and runs when all other
flags have been checked.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from ouzel.gguf.files import is_gguf
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_config_edit import (
    CONFIG_FILE,
    ConfigEntry,
    add_to_config,
    base_path_in,
    remove_from_config,
)
from ouzel.options.profiles.ovms_loras import SourceLora
from ouzel.options.profiles.ovms_meanings import TASKS
from ouzel.options.profiles.ovms_pull import Pull, pull_adapters, pull_model, write_graph
from ouzel.options.profiles.ovms_servable import servable_names

_PULL, _CONFIGURE, _LIST = "pull", "configure", "list_models"
_ADD, _REMOVE = "add_to_config", "remove_from_config"
NAMES = (_PULL, _CONFIGURE, _LIST, _ADD, _REMOVE)
MAY_NAME_A_FILE = (_ADD, _REMOVE)  # until 2025.2 the value was the file, or its directory
ENTRY_KEYS = (  # flags that `--add_to_config` writes into the entry
    *("target_device", "plugin_config", "group_name", "batch_size", "shape", "layout", "nireq"),
    "model_version_policy",
)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Directive:
    flag: str  # the name in messages
    run: Callable[[], None]  # raises OuzelError
    is_all: bool = True  # no server starts after the action


@dataclass(frozen=True, slots=True)
class Wish:
    """A command line that may ask for a directive: an action of OVMS instead of a server."""

    flags: Mapping[str, str]  # values by OpenVINO Model Server's names
    repository: str
    loras: tuple[SourceLora, ...] = ()

    @property
    def source(self) -> str:
        return self.flags.get("source_model", "")

    @property
    def is_all(self) -> bool:
        """Tells whether the command ends without a server."""
        return any(map(self.is_on, NAMES))

    def is_on(self, name: str) -> bool:
        return self.flags.get(name, "false").lower() not in ("false", "0")


def read_directive(wish: Wish) -> Directive | None:
    """Returns the directive of the flags, or None if a server starts directly.

    Raises InvalidOption.
    """
    named = [name for name in NAMES if wish.is_on(name)]
    if len(named) > 1:
        raise InvalidOption(f"--{named[0]}: cannot be used with --{named[1]}")
    if named:
        make: Mapping[str, Callable[[Wish], Callable[[], None]]] = {
            _PULL: _pulling,
            _CONFIGURE: _configuring,
            _LIST: _listing,
            _ADD: _adding,
            _REMOVE: _removing,
        }
        return Directive(f"--{named[0]}", make[named[0]](wish))
    return _preparation(wish)


def _preparation(wish: Wish) -> Directive | None:
    """Returns the download of the model or its adapters, if the start needs it."""
    if wish.repository and _HUB_NAME.fullmatch(wish.source):
        directory, gguf = Path(wish.repository, wish.source), wish.flags.get("gguf_filename", "")
        is_there = (directory / gguf).is_file() if gguf else directory.is_dir()
        if not is_there or wish.is_on("overwrite_models"):
            return Directive(
                "--source_model",
                partial(pull_model, _describe_pull(wish, wish.source)),
                is_all=False,
            )
    missing = [lora for lora in wish.loras if lora.is_missing]
    if missing:
        return Directive(
            "--source_loras", partial(pull_adapters, missing, is_overwriting=False), is_all=False
        )
    return None


def _pulling(wish: Wish) -> Callable[[], None]:
    source = wish.source or wish.flags.get("model_name", "")
    if not wish.repository:
        raise InvalidOption("--pull: needs --model_repository_path, the directory of the models")
    if not _HUB_NAME.fullmatch(source):
        raise InvalidOption(f"--pull: needs --source_model, as owner/name, given {source!r}")
    return partial(pull_model, _describe_pull(wish, source))


def _describe_pull(wish: Wish, source: str) -> Pull:
    if ".." in Path(source).parts:
        raise InvalidOption(f"--source_model: must be owner/name, given {source!r}")
    gguf = wish.flags.get("gguf_filename", "")
    if gguf and (".." in Path(gguf).parts or Path(gguf).is_absolute() or not is_gguf(Path(gguf))):
        raise InvalidOption(
            f"--gguf_filename: must be the name of a GGUF file of the repository, given {gguf!r}"
        )
    return Pull(
        source=source,
        directory=Path(wish.repository, source),
        flags=wish.flags,
        gguf=gguf,
        draft=wish.flags.get("draft_source_model", ""),
        loras=wish.loras,
        is_overwriting=wish.is_on("overwrite_models"),
    )


def _configuring(wish: Wish) -> Callable[[], None]:
    """Returns the action of `--configure` for a model at `--model_path` or in the repository."""
    name = wish.source or wish.flags.get("model_name", "")
    text = wish.flags.get("model_path") or (
        str(Path(wish.repository, name)) if wish.repository and name else ""
    )
    path, gguf = Path(text).expanduser(), wish.flags.get("gguf_filename", "")
    if is_gguf(path):
        path, gguf = path.parent, path.name
    if not text or not path.is_dir():
        raise InvalidOption(
            f"--configure: needs --model_path, the directory of a model, given {text!r}"
        )
    if "task" not in wish.flags and not gguf and not (path / "config.json").is_file():
        raise InvalidOption(
            f"--configure: needs --task {' or '.join(TASKS)}, since {path} has no config.json"
        )
    draft = wish.flags.get("draft_source_model", "")
    draft_path = str(Path(draft).expanduser().resolve()) if draft else ""
    return partial(
        write_graph,
        path,
        wish.flags,
        name=name or path.resolve().name,
        gguf=gguf,
        draft_path=draft_path,
    )


def _listing(wish: Wish) -> Callable[[], None]:
    if not wish.repository or not Path(wish.repository).is_dir():
        raise InvalidOption(
            f"--list_models: needs --model_repository_path, a directory, given {wish.repository!r}"
        )
    return lambda: _say(*servable_names(Path(wish.repository)))


def _adding(wish: Wish) -> Callable[[], None]:
    path, name = _config_path(wish, _ADD), _model_name(wish, _ADD)
    base_path = wish.flags.get("model_path", "")
    if not base_path and wish.repository:
        base_path = base_path_in(Path(wish.repository), name, path)
    if not base_path:
        raise InvalidOption(
            "--add_to_config: needs --model_path, or --model_repository_path in which the model is"
        )
    settings = {key: _setting(key, wish.flags[key]) for key in ENTRY_KEYS if key in wish.flags}
    return lambda: _say(add_to_config(path, ConfigEntry(name, base_path, settings)))


def _setting(key: str, text: str) -> object:
    if key == "nireq" and text.isdecimal():
        return int(text)
    if key in ("plugin_config", "model_version_policy"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise InvalidOption(f"--{key}: must be a JSON object, given {text[:200]!r}") from error
    return text


def _removing(wish: Wish) -> Callable[[], None]:
    path, name = _config_path(wish, _REMOVE), _model_name(wish, _REMOVE)
    return lambda: _say(remove_from_config(path, name))


def _config_path(wish: Wish, flag: str) -> Path:
    """Returns the file named by `--config_path`, by the flag itself, or by the repository."""
    given = wish.flags.get("config_path") or wish.flags[flag].removeprefix("true")
    if not given and not wish.repository:
        raise InvalidOption(
            f"--{flag}: needs --config_path, or --model_repository_path, where config.json is"
        )
    path = Path(given or wish.repository).expanduser()
    return path / CONFIG_FILE if path.is_dir() or not given else path


def _model_name(wish: Wish, flag: str) -> str:
    name = wish.flags.get("model_name", "")
    if not name or not name.isprintable():
        raise InvalidOption(f"--{flag}: needs --model_name, given {name!r}")
    return name


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
