"""What one case is, and what cases are written with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A schema under which valid instances only are generated. Instances are JSON texts."""

    name: str
    schema: object
    accepts: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()  # they are not valid
    narrower: tuple[str, ...] = ()  # they are valid, and never generated all the same
    modes: tuple[bool, ...] = (False, True)  # strict or not


@dataclass(frozen=True, slots=True)
class Refused:
    name: str
    schema: object
    message: str  # a pattern: the keyword and its place, or what the engine says
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
