"""Describes every field of the records of `ouzel.config` as an option of the command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints  # Any: values before msgspec.convert

import msgspec
from msgspec import inspect

from ouzel.config import (
    AudioConfig,
    EngineConfig,
    HostedToolsConfig,
    LimitsConfig,
    MediaConfig,
    ModelConfig,
    ModelsConfig,
    ObservabilityConfig,
    ServerConfig,
    StoreConfig,
    VllmConfig,
)
from ouzel.options.invalid_option import InvalidValue

RECORDS = (
    ModelConfig,
    ModelsConfig,
    EngineConfig,
    VllmConfig,
    LimitsConfig,
    MediaConfig,
    AudioConfig,
    ServerConfig,
    StoreConfig,
    HostedToolsConfig,
    ObservabilityConfig,
)
ENVIRONMENT_PREFIX = "OUZEL_"
_FLAGS = {"models": "--model"}  # flags whose name differs from the name of their option
_OF_MSGSPEC = ("Expected ", "Invalid enum value ")  # beginnings of its messages
_METAVARS = {"models": "NAME=MODEL"}

Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: a field of a record, with its flag, environment variable and help."""

    name: str
    flag: str
    variable: str  # the environment variable
    description: str
    default_text: str  # the default, as help shows it
    heading: str
    choices: tuple[str, ...]
    allowed: str  # a phrase about the allowed values; empty if the type has none
    metavar: str
    is_flag: bool
    is_list: bool
    is_secret: bool
    is_common: bool

    @property
    def invocation(self) -> str:
        """Returns `--max-num-seqs N`, or `--[no-]store` for an option that is on or off."""
        return f"--[no-]{self.flag[2:]}" if self.is_flag else f"{self.flag} {self.metavar}"

    @property
    def help(self) -> str:
        """Returns the description with the choices and the default."""
        facts = ["repeatable"] if self.is_list else []
        facts += [f"one of {', '.join(self.choices)}"] if self.choices else []
        return f"{self.description} ({'; '.join([*facts, f'default: {self.default_text}'])})"


def format_flag(name: str) -> str:
    return _FLAGS.get(name) or "--" + name.replace("_", "-")


@cache
def list_options(record: type[msgspec.Struct]) -> tuple[Option, ...]:
    """Returns the options of a record; every field must have a description."""
    struct = inspect.type_info(record)
    assert isinstance(struct, inspect.StructType)
    choices = {
        name: tuple(map(str, get_args(hint))) for name, hint in get_type_hints(record).items()
    }
    return tuple(
        _option(field, choices[field.name], getattr(record, "heading", ""))
        for field in struct.fields
    )


def _option(field: inspect.Field, choices: tuple[str, ...], heading: str) -> Option:
    """Returns the option for one field. `choices` has the order of the record: msgspec loses it."""
    alternatives = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    described = alternatives[0]
    assert isinstance(described, inspect.Metadata), f"{field.name} has no description"
    kind = described.type
    schema = described.extra_json_schema or {}
    is_list = isinstance(kind, inspect.VarTupleType)
    is_number = isinstance(kind, inspect.IntType)
    last_word = field.name.upper().rpartition("_")[2]
    return Option(
        name=field.name,
        flag=format_flag(field.name),
        variable=ENVIRONMENT_PREFIX + field.name.upper(),
        description=schema["description"],
        default_text=_default_text(field.default) or schema["unset"],
        heading=schema["heading"] or heading,
        choices=choices if isinstance(kind, inspect.LiteralType) else (),
        allowed=_allowed_values(kind),
        metavar=_METAVARS.get(field.name)
        or ("N" if is_number else last_word.removesuffix("S" if is_list else "")),
        is_flag=isinstance(kind, inspect.BoolType),
        is_list=is_list,
        is_secret=schema["writeOnly"],
        is_common=schema["isCommon"],
    )


def _default_text(default: object) -> str:
    """Returns a default as help shows it; an empty text for an empty default."""
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


def _allowed_values(kind: inspect.Type) -> str:
    """Returns a phrase like "must be a whole number from 1 to 65535"; empty for other types."""
    words = ""
    match kind:
        case inspect.IntType():
            words = f"must be a whole number{_range(kind)}"
        case inspect.FloatType():
            words = f"must be a number{_range(kind)}"
        case inspect.BoolType():
            words = "must be true or false"
        case inspect.VarTupleType(item_type=inspect.StrType(pattern=str(pattern))):
            words = f"each must match {pattern}"
        case inspect.StrType(pattern=str(pattern)):
            words = f"must match {pattern}"
        case inspect.VarTupleType(item_type=inspect.LiteralType(values=values)):
            words = f"each must be one of {', '.join(map(str, values))}"
        case inspect.VarTupleType():
            words = "must be a list"
        case inspect.StrType():
            words = "must be a text"
    return words


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {_number(kind.ge)} to {_number(kind.le)}"
    bounds = ((">", kind.gt), (">=", kind.ge), ("<", kind.lt), ("<=", kind.le))
    parts = [f"{sign} {_number(bound)}" for sign, bound in bounds if bound is not None]
    return f" {' and '.join(parts)}" if parts else ""


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def converted(record: type[Record], values: Mapping[str, Any]) -> Record:
    """Makes a record of those values whose names are fields of the record.

    Raises InvalidValue, which names the wrong option.
    """
    names = record.__struct_fields__
    for name in names:
        if name in values:
            try:
                msgspec.convert({name: values[name]}, record, strict=False)
            except msgspec.ValidationError as error:
                [option] = [option for option in list_options(record) if option.name == name]
                reason = str(error).partition(" - at ")[0]
                if option.choices:
                    reason = f"must be one of {', '.join(option.choices)}"
                elif reason.startswith(_OF_MSGSPEC) and option.allowed:
                    reason = option.allowed
                value = "a value that is not shown" if option.is_secret else repr(values[name])
                raise InvalidValue(name, option.flag, f"{reason}, given {value}") from error
    return msgspec.convert(
        {name: values[name] for name in names if name in values}, record, strict=False
    )
