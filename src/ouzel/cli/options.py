"""Flags, environment variables and YAML keys from the records of `ouzel.config`, so that each is written once."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # option values are typed by msgspec.convert

import msgspec
import yaml
from msgspec import inspect

from ouzel.cli.api_keys import with_all_keys
from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.lmi_settings import read_lmi_settings
from ouzel.config import EngineConfig, LimitsConfig, ModelConfig, ServerConfig, StoreConfig

RECORDS = (ModelConfig, EngineConfig, LimitsConfig, ServerConfig, StoreConfig)
ENVIRONMENT_PREFIX = "OUZEL_"
_OVMS_DEFAULTS = {"allowed_origins": ["*"]}  # OpenVINO Model Server's


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, complete."""

    model: ModelConfig
    engine: EngineConfig
    limits: LimitsConfig
    server: ServerConfig
    store: StoreConfig
    remarks: tuple[str, ...] = ()  # for the log


@dataclass(frozen=True, slots=True)
class Option:
    """One field of one record, as the command line sees it."""

    name: str
    description: str
    default: object
    choices: tuple[str, ...]
    is_flag: bool
    is_list: bool
    is_secret: bool

    @property
    def flag(self) -> str:
        return _flag(self.name)

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def options_of(record: type[msgspec.Struct]) -> list[Option]:
    """The record's fields; a field without a description is a mistake of ours."""
    struct = inspect.type_info(record)
    assert isinstance(struct, inspect.StructType)
    return [_option(field) for field in struct.fields]


def _option(field: inspect.Field) -> Option:
    alternatives = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    described = alternatives[0]
    assert isinstance(described, inspect.Metadata), f"{field.name} has no description"
    kind = described.type
    schema = described.extra_json_schema or {}
    return Option(
        name=field.name,
        description=schema.get("description", ""),
        default=field.default,
        choices=tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else (),
        is_flag=isinstance(kind, inspect.BoolType),
        is_list=isinstance(kind, inspect.VarTupleType),
        is_secret=bool(schema.get("writeOnly")),
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Every option as a flag; the default is absence, so that the environment and the file can speak."""
    parser.add_argument("--config", default=argparse.SUPPRESS, help="A YAML file with any of these options as keys.")
    for record in RECORDS:
        group = parser.add_argument_group((record.__doc__ or "").splitlines()[0].rstrip("."))
        for option in options_of(record):
            if option.name != "model":  # positional
                _add_option(group, option)


def _add_option(group: "argparse._ArgumentGroup", option: Option) -> None:
    default = ",".join(option.default) if isinstance(option.default, tuple) else option.default
    shown = "" if default in ("", None) else f" (default: {default})"
    arguments: dict[str, Any] = {"default": argparse.SUPPRESS, "help": (option.description + shown).replace("%", "%%")}
    if option.is_flag:
        arguments["action"] = argparse.BooleanOptionalAction
    elif option.is_list:
        arguments |= {"action": "append", "metavar": "KEY" if option.is_secret else "NAME"}
    elif option.choices:
        arguments |= {"choices": option.choices}
    else:
        arguments |= {"metavar": option.name.upper()}
    group.add_argument(option.flag, **arguments)


def read_options(arguments: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Options:
    """Flags over environment over file over the profile's settings over defaults.

    Raises InvalidOption.
    """
    given = dict(arguments)
    values: dict[str, Any] = {}
    environment = os.environ if environment is None else environment
    config_path = given.pop("config", None) or environment.get(ENVIRONMENT_PREFIX + "CONFIG")
    if config_path:
        values |= _read_file(Path(config_path))
    values |= _read_environment(environment)
    values |= {name: value for name, value in given.items() if value is not None}
    remarks: list[str] = []
    if values.get("profile") == "lmi":
        lmi_values, remarks = read_lmi_settings(environment, str(values.get("model", "")))
        values = lmi_values | values
    if values.get("profile") == "ovms":
        values = _OVMS_DEFAULTS | values
    _check_batch(values)
    options = Options(*(_convert(record, values) for record in RECORDS))  # type: ignore[arg-type]
    _check_cors(options.server)
    return replace(options, server=with_all_keys(options.server, environment), remarks=tuple(remarks))


def _read_file(path: Path) -> dict[str, Any]:
    try:
        with path.open() as file:  # parsed from text, a message would quote the line at fault, and it may hold a key
            content = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidOption(f"--config {path}: {error}") from error
    if not isinstance(content, dict):
        raise InvalidOption(f"--config {path}: must hold a mapping of option names to values")
    known = {option.name for record in RECORDS for option in options_of(record)}
    unknown = sorted(set(map(str, content)) - known)
    if unknown:
        raise InvalidOption(f"--config {path}: there is no option {', '.join(unknown)}")
    return content


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for record in RECORDS:
        for option in options_of(record):
            text = environment.get(option.variable, "").strip()
            if text:  # an empty variable is an absent one, as in compose files
                values[option.name] = [part.strip() for part in text.split(",")] if option.is_list else text
    return values


def _check_batch(values: dict[str, Any]) -> None:
    """One step must be able to decode every sequence of the batch."""
    engine = _convert(EngineConfig, values)
    assert isinstance(engine, EngineConfig)
    if engine.max_num_batched_tokens < engine.max_num_seqs:
        raise InvalidOption(
            f"--max-num-batched-tokens: must be >= --max-num-seqs, {engine.max_num_seqs}, "
            f"given {engine.max_num_batched_tokens}"
        )


def _check_cors(server: ServerConfig) -> None:
    """What is allowed must be allowed to somebody."""
    if server.allowed_origins:
        return
    default = ServerConfig()
    for name in ("allowed_methods", "allowed_headers", "allow_credentials"):
        if getattr(server, name) != getattr(default, name):
            raise InvalidOption(f"{_flag(name)}: needs --allowed-origins")


def _convert(record: type[msgspec.Struct], values: dict[str, Any]) -> msgspec.Struct:
    """One option at a time, so that the message can name the one at fault."""
    names = record.__struct_fields__
    for name in names:
        if name in values:
            try:
                msgspec.convert({name: values[name]}, record, strict=False)
            except msgspec.ValidationError as error:
                reason = str(error).partition(" - at ")[0]
                secret = any(option.is_secret for option in options_of(record) if option.name == name)
                given = "a value that is not shown" if secret else repr(values[name])
                raise InvalidOption(f"{_flag(name)}: {reason}, given {given}") from error
    return msgspec.convert({name: values[name] for name in names if name in values}, record, strict=False)
