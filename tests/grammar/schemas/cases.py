"""Defines the cases of the schema tests, and short functions to write schemas."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A schema whose grammar generates valid instances only. Instances are JSON texts."""

    name: str
    schema: object
    accepts: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()  # invalid instances
    narrower: tuple[str, ...] = ()  # valid instances that the grammar leaves out
    modes: tuple[bool, ...] = (False, True)  # values of `strict`


@dataclass(frozen=True, slots=True)
class Refused:
    name: str
    schema: object
    message: str  # pattern: the keyword and its place, or the engine's words
    modes: tuple[bool, ...] = (False, True)


PLAIN = (False,)
STRICT = (True,)
SHORT = {"type": "string", "maxLength": 4}
NULL = {"type": "null"}
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def closed(**properties: object) -> dict[str, object]:
    return closed_object(properties)


def closed_object(properties: dict[str, object], *optional: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def named(*names: str) -> dict[str, object]:
    return closed_object(dict.fromkeys(names, NULL))


def array(items: object, **more: object) -> dict[str, object]:
    return {"type": "array", "items": items, **more}


def text(**more: object) -> dict[str, object]:
    return {"type": "string", **more}
