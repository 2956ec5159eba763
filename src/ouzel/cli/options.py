"""Flags, environment variables and YAML keys come from the records of `ouzel.config`, where each is written once."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints  # Any: option values are typed by msgspec.convert

import msgspec
from msgspec import inspect

from ouzel.cli.api_keys import with_all_keys
from ouzel.cli.contradictions import check_bodies, check_cors, check_engine, check_media, check_metrics_port
from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.lmi_settings import read_lmi_settings
from ouzel.cli.suggestion import did_you_mean
from ouzel.config import (
    EngineConfig,
    LimitsConfig,
    MediaConfig,
    ModelConfig,
    ObservabilityConfig,
    ServerConfig,
    StoreConfig,
    VllmConfig,
)

RECORDS = (
    ModelConfig,
    EngineConfig,
    VllmConfig,
    LimitsConfig,
    MediaConfig,
    ServerConfig,
    StoreConfig,
    ObservabilityConfig,
)
ENVIRONMENT_PREFIX = "OUZEL_"
CONFIG_DESCRIPTION = "A YAML file with any of these options as keys; also OUZEL_CONFIG."
_OVMS_DEFAULTS = {"allowed_origins": ["*"], "strict_max_tokens": True}  # OpenVINO Model Server's


@dataclass(frozen=True, slots=True)
class Options:
    """Holds all that the user asked for."""

    model: ModelConfig
    engine: EngineConfig
    vllm: VllmConfig
    limits: LimitsConfig
    media: MediaConfig
    server: ServerConfig
    store: StoreConfig
    observability: ObservabilityConfig
    remarks: tuple[str, ...] = ()  # for the log
    given: frozenset[str] = frozenset()  # the options that somebody wrote


@dataclass(frozen=True, slots=True)
class Option:
    """Describes one field of one record, as the command line needs it."""

    name: str
    description: str
    default_text: str  # for people
    heading: str
    choices: tuple[str, ...]
    metavar: str
    is_flag: bool
    is_list: bool
    is_secret: bool
    is_common: bool

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def invocation(self) -> str:
        """Returns `--max-num-seqs N`, or `--[no-]store` for what is on or off."""
        return f"--[no-]{self.flag[2:]}" if self.is_flag else f"{self.flag} {self.metavar}"

    @property
    def help(self) -> str:
        """Returns the description with the choices and the default."""
        facts = ["repeatable"] if self.is_list else []
        facts += [f"one of {', '.join(self.choices)}"] if self.choices else []
        return f"{self.description} ({'; '.join([*facts, f'default: {self.default_text}'])})"


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


@cache
def options_of(record: type[msgspec.Struct]) -> tuple[Option, ...]:
    """Returns the record's fields; a field without a description is a mistake of ours."""
    struct = inspect.type_info(record)
    assert isinstance(struct, inspect.StructType)
    choices = {name: tuple(map(str, get_args(hint))) for name, hint in get_type_hints(record).items()}
    return tuple(_option(field, choices[field.name], getattr(record, "heading", "")) for field in struct.fields)


def _option(field: inspect.Field, choices: tuple[str, ...], heading: str) -> Option:
    """`choices` are in the order of the record, since msgspec sorts them."""
    alternatives = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    described = alternatives[0]
    assert isinstance(described, inspect.Metadata), f"{field.name} has no description"
    kind = described.type
    schema = described.extra_json_schema or {}
    is_list = isinstance(kind, inspect.VarTupleType)
    last_word = field.name.upper().rpartition("_")[2]
    return Option(
        name=field.name,
        description=schema["description"],
        default_text=_default_text(field.default) or schema["unset"],
        heading=schema["heading"] or heading,
        choices=choices if isinstance(kind, inspect.LiteralType) else (),
        metavar="N" if isinstance(kind, inspect.IntType) else last_word.removesuffix("S" if is_list else ""),
        is_flag=isinstance(kind, inspect.BoolType),
        is_list=is_list,
        is_secret=schema["writeOnly"],
        is_common=schema["isCommon"],
    )


def _default_text(default: object) -> str:
    """Returns what help shows of a default; nothing for an empty one."""
    match default:
        case None:
            return ""
        case bool():
            return "on" if default else "off"
        case float():
            return f"{default:g}"
        case tuple():
            return ", ".join(default)
        case _:
            return str(default)


def known_flags() -> list[str]:
    """Returns every flag that may be written, those that switch something off included."""
    options = [option for record in RECORDS for option in options_of(record) if option.name != "model"]
    negations = [f"--no-{option.flag[2:]}" for option in options if option.is_flag]
    return ["--config", "--help", *(option.flag for option in options), *negations]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds every option as a flag; the default is absence, so that the environment and the file can speak."""
    parser.add_argument("--config", default=argparse.SUPPRESS)
    for record in RECORDS:
        for option in options_of(record):
            if option.name != "model":  # positional
                action = argparse.BooleanOptionalAction if option.is_flag else "append" if option.is_list else "store"
                parser.add_argument(option.flag, default=argparse.SUPPRESS, action=action)


def read_options(arguments: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Options:
    """Merges them: flags over environment over file over the profile's settings over defaults. Raises InvalidOption."""
    flags = dict(arguments)
    values: dict[str, Any] = {}
    environment = os.environ if environment is None else environment
    config_path = flags.pop("config", None) or environment.get(ENVIRONMENT_PREFIX + "CONFIG")
    if config_path:
        values |= _read_file(Path(config_path))
    values |= _read_environment(environment)
    values |= {name: value for name, value in flags.items() if value is not None}
    remarks = _remarks_on_variables(environment)
    if values.get("profile") == "lmi":
        lmi_values, lmi_remarks = read_lmi_settings(environment, str(values.get("model", "")))
        values = lmi_values | values
        remarks += lmi_remarks
    if values.get("profile") == "ovms":
        values = _OVMS_DEFAULTS | values
    _check_demo(values)
    options = Options(*(_convert(record, values) for record in RECORDS))  # type: ignore[arg-type]
    if not options.vllm.is_chosen:
        check_engine(options.engine)
    check_bodies(options.limits)
    check_media(options.media)
    check_cors(options.server)
    check_metrics_port(options.observability, options.server)
    options = replace(options, remarks=tuple(remarks), given=frozenset(values))
    return replace(options, server=with_all_keys(options.server, environment))


def _read_file(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  slow to import, seldom needed

    try:
        with path.open() as file:  # parsed from text, a message would quote the line at fault, and it may hold a key
            content = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidOption(f"--config {path}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise InvalidOption(f"--config {path}: must hold a mapping of option names to values")
    known = {option.name for record in RECORDS for option in options_of(record)}
    unknown = sorted(set(map(str, content)) - known)
    if unknown:
        suggestion = did_you_mean([key.replace("-", "_") for key in unknown], known)
        raise InvalidOption(f"--config {path}: there is no option {', '.join(unknown)}{suggestion}")
    return content


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for record in RECORDS:
        for option in options_of(record):
            text = environment.get(option.variable, "").strip()
            if text:  # an empty variable is an absent one, as in compose files
                values[option.name] = [part.strip() for part in text.split(",")] if option.is_list else text
    return values


def _remarks_on_variables(environment: Mapping[str, str]) -> list[str]:
    """Names variables that are nearly an option's; others may be a program's, as Kubernetes' OUZEL_SERVICE_HOST."""
    known = {option.variable for record in RECORDS for option in options_of(record)} | {ENVIRONMENT_PREFIX + "CONFIG"}
    strangers = [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known]
    suggestions = {name: did_you_mean([name], known, likeness=0.9) for name in strangers}
    return [f"{name} is not read{suggestion}" for name, suggestion in suggestions.items() if suggestion]


def _check_demo(values: dict[str, Any]) -> None:
    if values.get("model") and "demo" in values:
        raise InvalidOption(f"--demo: needs that no model is named, given the model {values['model']!r}")


def _convert(record: type[msgspec.Struct], values: dict[str, Any]) -> msgspec.Struct:
    """Converts one option at a time, so that the message can name the one at fault."""
    names = record.__struct_fields__
    for name in names:
        if name in values:
            try:
                msgspec.convert({name: values[name]}, record, strict=False)
            except msgspec.ValidationError as error:
                [option] = [option for option in options_of(record) if option.name == name]
                reason = str(error).partition(" - at ")[0]
                reason = f"must be one of {', '.join(option.choices)}" if option.choices else reason
                value = "a value that is not shown" if option.is_secret else repr(values[name])
                raise InvalidOption(f"{option.flag}: {reason}, given {value}") from error
    return msgspec.convert({name: values[name] for name in names if name in values}, record, strict=False)
