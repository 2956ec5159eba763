"""With `--profile ovms`, OpenVINO Model Server's flags are read as ours. Each option of ours beats what they say."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import get_args

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.one_line_parser import OneLineParser
from ouzel.cli.ovms_meanings import MEANINGS, REFUSED, WITHOUT_MEANING, Settings, Values, take_setting
from ouzel.cli.ovms_models import OvmsFiles
from ouzel.cli.ovms_servable import servable_names
from ouzel.config.model import TaskOption

REPOSITORY_VARIABLE = "OVMS_MODEL_REPOSITORY_PATH"
_CONFIG, _POLL, _LIST, _PLUGIN = "config_path", "file_system_poll_wait_seconds", "list_models", "plugin_config"
_REPOSITORY = "model_repository_path"  # where models by the name of `source_model` are
OF_FILES = (_CONFIG, _POLL, _LIST, _PLUGIN, _REPOSITORY)
_GRPC_PORT = "port"
_MAY_STAND_ALONE = {  # and are true then
    *("allow_credentials", "enable_prefix_caching", "enable_tool_guided_generation", "metrics_enable"),
    *("overwrite_models", "verbose_response", "pull", "configure", "list_models", "dynamic_split_fuse"),
    *("add_to_config", "remove_from_config"),
}


@dataclass(frozen=True, slots=True)
class OvmsFlags:
    """Holds what a command line says in OVMS's words."""

    names: tuple[str, ...]
    values: Values  # by the names of our options
    files: OvmsFiles
    remarks: tuple[str, ...]  # for the log
    rest: tuple[str, ...]  # our own arguments
    listed: tuple[str, ...] | None = None  # models whose names are all that is asked for

    def check_profile(self, profile: str) -> None:
        """Raises InvalidOption where they do not belong."""
        if self.names and profile != "ovms":
            raise InvalidOption(
                f"--{self.names[0]} is a flag of OpenVINO Model Server: it is read with --profile ovms; "
                "ours are spelt with hyphens, see ouzel serve --help"
            )


def split_ovms_flags(arguments: Sequence[str], environment: Mapping[str, str]) -> OvmsFlags:
    """Raises InvalidOption for those that are refused."""
    known = [*MEANINGS, *REFUSED, *WITHOUT_MEANING, *OF_FILES]
    if _is_own_task(arguments):
        known.remove("task")
    if any(argument.partition("=")[0] == "--rest_port" for argument in arguments):
        known.append(_GRPC_PORT)  # elsewhere it is ours
    parser = OneLineParser(prog="ouzel", add_help=False, allow_abbrev=False)
    for name in known:
        optional = {"nargs": "?", "const": "true"} if name in _MAY_STAND_ALONE else {}
        parser.add_argument(f"--{name}", dest=name, default=argparse.SUPPRESS, **optional)  # type: ignore[arg-type]
    namespace, rest = parser.parse_known_args(list(arguments))
    flags: dict[str, str] = vars(namespace)
    settings = Settings()
    for name, value in flags.items():
        _take(settings, name, value)
    repository = flags.get(_REPOSITORY) or environment.get(REPOSITORY_VARIABLE, "")
    if _POLL in flags and _CONFIG not in flags and not _repository_config(repository):
        settings.without_meaning.append(_POLL)
    return OvmsFlags(
        names=tuple(flags),
        values=settings.values | _local_model(flags, repository),
        files=OvmsFiles(
            config_path=Path(flags[_CONFIG]) if _CONFIG in flags else None,
            repository_config_path=_repository_config(repository),
            poll_s=_seconds(flags.get(_POLL, "1")),
        ),
        remarks=(
            *(f"OpenVINO Model Server's --{name} has no meaning here" for name in settings.without_meaning),
            *(f"--{warning}" for warning in settings.warnings),
        ),
        rest=tuple(rest),
        listed=_listed(repository) if flags.get(_LIST, "false") == "true" else None,
    )


def _is_own_task(arguments: Sequence[str]) -> bool:
    """Tells whether `--task` has a value of ours, which has other words for the same."""
    values = [argument.partition("=")[2] for argument in arguments if argument.startswith("--task=")]
    values += [value for flag, value in pairwise(arguments) if flag == "--task"]
    return any(value in get_args(TaskOption) for value in values)


def _take(settings: Settings, name: str, value: str) -> None:
    if name in (_CONFIG, _POLL, _LIST, _REPOSITORY):
        return
    try:
        take_setting(settings, name, value)
    except InvalidOption as error:
        raise InvalidOption(f"--{error}") from error


def _local_model(flags: Mapping[str, str], repository: str) -> Values:
    """Returns `source_model` in the repository, under its own name, where it has been pulled."""
    source = flags.get("source_model", "")
    directory = Path(repository) / source
    if not source or not repository or not directory.is_dir():
        return {}
    return {"model": str(directory), "served_model_name": [flags.get("model_name", source)]}


def _repository_config(repository: str) -> Path | None:
    path = Path(repository) / "config.json"
    return path if repository and path.is_file() else None


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise InvalidOption(f"--{_POLL}: must be a whole number, given {text!r}")
    return float(text)


def _listed(repository: str) -> tuple[str, ...]:
    if not Path(repository).is_dir() or not repository:
        raise InvalidOption(f"--{_LIST}: needs --{_REPOSITORY}, a directory, given {repository!r}")
    return tuple(servable_names(Path(repository)))
