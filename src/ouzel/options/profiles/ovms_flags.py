"""Reads OpenVINO Model Server's flags as Ouzel's options; Ouzel's own flags beat them."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import get_args

from ouzel.config.model import TaskOption
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import LEAVES_OUT_IR_DRAFT
from ouzel.options.profiles.ovms_directives import MAY_NAME_A_FILE, NAMES, Wish
from ouzel.options.profiles.ovms_loras import SourceLora, read_source_loras
from ouzel.options.profiles.ovms_meanings import (
    MEANINGS,
    REFUSED,
    TASKS,
    WITHOUT_MEANING,
    Settings,
    Values,
    take_setting,
)
from ouzel.options.profiles.ovms_models import OvmsFiles
from ouzel.options.profiles.ovms_pull import draft_directory_name
from ouzel.terminal.one_line_parser import OneLineParser

REPOSITORY_VARIABLE = "OVMS_MODEL_REPOSITORY_PATH"
_CONFIG, _POLL, _PLUGIN = "config_path", "file_system_poll_wait_seconds", "plugin_config"
_REPOSITORY = "model_repository_path"  # the directory of models named by `source_model`
_OVERWRITE, _GGUF, _LORAS = "overwrite_models", "gguf_filename", "source_loras"
_OF_PULLS = (_REPOSITORY, _OVERWRITE, _GGUF, _LORAS)
_EAGLE = "draft_eagle3_mode"
READ_HERE = (_CONFIG, _POLL, *_OF_PULLS, _EAGLE, *NAMES)  # flags without an entry in MEANINGS
_GRPC_PORT = "port"
_SPELT_ALIKE = ("pooling", "normalize", "truncate")  # flags of both, with values of both
_BOOLEANS = ("true", "false", "1", "0")
_WORDS_OF_TASKS: Mapping[str, str] = {ours: theirs for theirs, ours in TASKS.items()}
_MAY_STAND_ALONE = {  # and are true then
    *(
        "allow_credentials",
        "enable_prefix_caching",
        "enable_tool_guided_generation",
        "metrics_enable",
    ),
    *(
        "verbose_response",
        "dynamic_split_fuse",
        "normalize",
        "truncate",
        "disable_input_count_validation",
        _EAGLE,
    ),
    *("stateful", "idle_sequence_cleanup", "low_latency_transformation", _OVERWRITE, *NAMES),
}


@dataclass(frozen=True, slots=True)
class OvmsFlags:
    """The flags of OVMS in a command line, and the other arguments."""

    rest: tuple[str, ...]  # the arguments that are Ouzel's own
    names: tuple[str, ...] = ()
    values: Values = field(default_factory=dict)  # values by the names of Ouzel's options
    files: OvmsFiles = field(default_factory=OvmsFiles)
    remarks: tuple[str, ...] = ()  # lines of the log
    wish: Wish | None = None  # None: no flag of OVMS is given, and no repository


def split_ovms_flags(arguments: Sequence[str], environment: Mapping[str, str]) -> OvmsFlags:
    """Splits OVMS's flags from Ouzel's. Raises InvalidOption for a flag that is not supported."""
    flags, rest = _parsed(arguments)
    repository = flags.get(_REPOSITORY) or environment.get(REPOSITORY_VARIABLE, "")
    if not flags and not repository:
        return OvmsFlags(rest=tuple(rest))
    settings = Settings()
    for name, value in flags.items():
        _take(settings, name, value)
    wish = _read_wish(flags, repository, arguments)
    if wish.is_all:
        values, files = _without_model(settings.values), OvmsFiles()
    else:
        values = settings.values | _local_model(flags, repository) | _adapters(wish.loras)
        files = _files(flags, repository)
        if _POLL in flags and _CONFIG not in flags and not files.repository_config_path:
            settings.without_meaning.append(_POLL)
    if flags.get(_EAGLE, "false") in ("true", "1"):
        values = values | {LEAVES_OUT_IR_DRAFT: True}
    return OvmsFlags(
        names=tuple(name for name in flags if name not in _SPELT_ALIKE),
        values=values,
        files=files,
        remarks=(
            *(
                f"OpenVINO Model Server's --{name} has no meaning here"
                for name in settings.without_meaning
            ),
            *(f"--{warning}" for warning in settings.warnings),
            *_remarks_on_weights(wish),
        ),
        rest=tuple(rest),
        wish=wish,
    )


def _read_wish(flags: dict[str, str], repository: str, arguments: Sequence[str]) -> Wish:
    """Collects the flags that directives read. Raises InvalidOption for wrong adapters."""
    source = flags.get("source_model", "")
    directory = Path(repository, source) if repository and source else None
    loras = read_source_loras(flags.get(_LORAS, ""), directory)
    task = _WORDS_OF_TASKS.get(_own_task(arguments))
    return Wish(flags if task is None else flags | {"task": task}, repository, loras)


def _parsed(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Returns OVMS's flags by name, and the other arguments."""
    known = [*MEANINGS, *REFUSED, *WITHOUT_MEANING, *READ_HERE, _PLUGIN]
    if _own_task(arguments):
        known.remove("task")
    if any(argument.partition("=")[0] == "--rest_port" for argument in arguments):
        known.append(_GRPC_PORT)  # elsewhere it is ours
    parser = OneLineParser(prog="ouzel", add_help=False, allow_abbrev=False)
    for name in dict.fromkeys(known):
        parser.add_argument(f"--{name}", dest=name, default=argparse.SUPPRESS)
    namespace, rest = parser.parse_known_args([*_with_values(arguments)])
    return vars(namespace), rest


def _with_values(arguments: Sequence[str]) -> Iterator[str]:
    """Yields the arguments; a flag of OVMS without a value gets the value true."""
    for argument, following in pairwise([*arguments, ""]):
        name = argument.removeprefix("--")
        is_alone = (
            argument.startswith("--")
            and name in _MAY_STAND_ALONE
            and following.lower() not in _BOOLEANS
        )
        if is_alone and name in MAY_NAME_A_FILE:
            is_alone = not following or following.startswith("-")
        yield f"{argument}=true" if is_alone else argument


def _own_task(arguments: Sequence[str]) -> str:
    """Returns the value of `--task` if it is a task of Ouzel, else an empty text."""
    values = [
        argument.partition("=")[2] for argument in arguments if argument.startswith("--task=")
    ]
    values += [value for flag, value in pairwise(arguments) if flag == "--task"]
    return next((value for value in reversed(values) if value in get_args(TaskOption)), "")


def _take(settings: Settings, name: str, value: str) -> None:
    if name in READ_HERE:
        return
    try:
        take_setting(settings, name, value)
    except InvalidOption as error:
        raise InvalidOption(f"--{error}") from error


def _remarks_on_weights(wish: Wish) -> list[str]:
    if not wish.is_all or "weight-format" not in wish.flags:
        return []
    return [
        "--weight-format: a server compresses the weights when it loads the model; give the flag "
        "at its start"
    ]


def _without_model(values: Values) -> Values:
    return {
        name: value
        for name, value in values.items()
        if name not in ("model", "draft_model", "served_model_name")
    }


def _local_model(flags: Mapping[str, str], repository: str) -> Values:
    """Returns the options of `source_model`: its directory if it is pulled, or its hub name."""
    source, gguf = flags.get("source_model", ""), flags.get(_GGUF, "")
    if not source:
        return (
            {"model": str(Path(flags["model_path"], gguf))}
            if gguf and "model_path" in flags
            else {}
        )
    values: Values = {"served_model_name": [flags.get("model_name", source)]}
    directory = Path(repository, source)
    if not repository or not directory.is_dir():
        return values | {"model": f"{source}:{gguf}"} if gguf else {}
    draft = flags.get("draft_source_model", "")
    if draft and (pulled := directory / draft_directory_name(draft)).is_dir():
        values["draft_model"] = str(pulled)
    return values | {"model": str(directory / gguf)}


def _adapters(loras: Sequence[SourceLora]) -> Values:
    return {"lora": [f"{lora.alias}={lora.directory}" for lora in loras]} if loras else {}


def _files(flags: Mapping[str, str], repository: str) -> OvmsFiles:
    in_repository = Path(repository) / "config.json"
    return OvmsFiles(
        config_path=Path(flags[_CONFIG]) if _CONFIG in flags else None,
        repository_config_path=in_repository if repository and in_repository.is_file() else None,
        poll_s=_seconds(flags.get(_POLL, "1")),
    )


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise InvalidOption(f"--{_POLL}: must be a whole number, given {text!r}")
    return float(text)
