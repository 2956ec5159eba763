"""Converts the fields of a graph's options: their types, and their effects on Ouzel's options."""

import os.path
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_meanings import Settings, take_setting
from ouzel.options.profiles.text_proto import Message, Scalar
from ouzel.terminal.suggestion import did_you_mean

Kind = Literal["text", "number", "switch", "name", "message"]
Texts = Mapping[
    str, str
]  # the values of a graph's fields, by the names of the fields; of a message it is empty

_WANTED: Mapping[Kind, str] = {
    "text": "a text in quotation marks",
    "number": "a whole number",
    "switch": "true or false",
    "name": "a name without quotation marks",
    "message": "a message in braces",
}
_BOOLEANS = dict.fromkeys(("true", "True", "t", "1"), "true") | dict.fromkeys(
    ("false", "False", "f", "0"), "false"
)


@dataclass(frozen=True, slots=True)
class GivenValue:
    """The value of one field of a graph."""

    field: str
    text: str
    directory: Path  # the graph's directory: paths are relative to it


Take = Callable[[Settings, GivenValue], None]


@dataclass(frozen=True, slots=True)
class Field:
    kind: Kind
    take: Take  # raises InvalidOption for a value that is not supported


@dataclass(frozen=True, slots=True)
class Calculator:
    """A calculator of OVMS whose node in a graph is a model that Ouzel serves."""

    message: str  # the type of the node's options
    fields: Mapping[str, Field]
    finish: Callable[[Settings, Texts], None]  # handles fields that depend on each other


def read_fields(calculator: Calculator, options: Message, directory: Path) -> Settings:
    """Returns Ouzel's options for the fields of the graph. Raises InvalidOption."""
    names = [name for name, _ in options.fields]
    settings = Settings()
    texts: dict[str, str] = {}
    for name, value in options.fields:
        if name not in calculator.fields:
            raise InvalidOption(
                f"{calculator.message} has no field {name}{did_you_mean([name], calculator.fields)}"
            )
        if names.count(name) > 1:
            raise InvalidOption(f"{name}: must be given once, given {names.count(name)} times")
        field = calculator.fields[name]
        texts[name] = _read_value(name, field.kind, value)
        field.take(settings, GivenValue(name, texts[name], directory))
    if "model" not in settings.values:
        raise InvalidOption("models_path: must be given")
    calculator.finish(settings, texts)
    return settings


def _read_value(name: str, kind: Kind, value: Scalar | Message) -> str:
    """Returns the value as text. Raises InvalidOption for a value of another type."""
    if isinstance(value, Message):
        if kind == "message":
            return ""
        raise InvalidOption(f"{name}: must be {_WANTED[kind]}, given a message")
    text = _READERS[kind](value)
    if text is None:
        raise InvalidOption(f"{name}: must be {_WANTED[kind]}, given {value.text[:200]!r}")
    return text


def _read_number(value: Scalar) -> str | None:
    try:
        return None if value.is_string or int(value.text, 0) < 0 else str(int(value.text, 0))
    except ValueError:
        return None


_READERS: Mapping[Kind, Callable[[Scalar], str | None]] = {
    "text": lambda value: value.text if value.is_string else None,
    "number": _read_number,
    "switch": lambda value: None if value.is_string else _BOOLEANS.get(value.text),
    "name": lambda value: None if value.is_string else value.text,
    "message": lambda _: None,
}


def flag(name: str) -> Take:
    """Returns a function that applies the field like OVMS's flag of this name."""
    return lambda settings, given: take_setting(settings, name, given.text)


def option(name: str) -> Take:
    """Returns a function that stores the value of the field in an option of Ouzel."""
    return lambda settings, given: settings.values.update({name: given.text})


def path(name: str) -> Take:
    """Returns a function that stores a path in an option; graphs have relative paths."""
    return lambda settings, given: settings.values.update(
        {name: os.path.abspath(given.directory / given.text)}
    )


def without_meaning(settings: Settings, given: GivenValue) -> None:
    settings.without_meaning.append(given.field)


def warning(text: str) -> Take:
    """Ignores the field; the log says so."""
    return lambda settings, given: settings.warnings.append(f"{given.field}: {text}")


def refused(text: str) -> Take:
    def refuse(_: Settings, given: GivenValue) -> None:
        raise InvalidOption(f"{given.field}: {text}, given {given.text!r}")

    return refuse


def ignored(_: Settings, given: GivenValue) -> None:
    """Does nothing: the calculator's `finish` handles the field, after all others are read."""
