"""Turns the fields of a form into a JSON object, which the decoders of bodies then read.

Clients write lists as `name[]`, once for each entry, and the fields of an object as `name[field]`.
A name that comes several times is a list too. An empty text is the same as no field.
"""

import re
from collections.abc import Iterable

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject

# A request that waits for its model is read for this field before its endpoint decodes it.
_BOOLEANS = ("stream",)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}

_BRACKETS = re.compile(r"(\w+)\[(\w*)\]", re.ASCII)


def make_form_object(pairs: Iterable[tuple[str, str]]) -> JsonObject:
    """Returns the object of the pairs of a name and a text.

    Raises InvalidRequest for a name that is both a text and an object, and for a boolean field
    with another text than true or false.
    """
    made: JsonObject = {}
    for name, text in pairs:
        if not text:
            continue
        brackets = _BRACKETS.fullmatch(name)
        if brackets is None:
            _add(made, name, _read_text(name, text))
        elif brackets[2]:
            _add_entry(made, brackets[1], brackets[2], text)
        else:
            _add_to_list(made, brackets[1], text)
    return made


def _read_text(name: str, text: str) -> object:
    if name not in _BOOLEANS:
        return text
    if text.lower() not in _TRUTH:
        raise InvalidRequest(f"must be true or false, given {text[:100]!r}", field=name)
    return _TRUTH[text.lower()]


def _add(made: JsonObject, name: str, value: object) -> None:
    if name in made:
        _add_to_list(made, name, value)
    else:
        made[name] = value


def _add_to_list(made: JsonObject, name: str, value: object) -> None:
    before = made.get(name, [])
    if isinstance(before, dict):
        raise _refuse_both(name)
    made[name] = [*before, value] if isinstance(before, list) else [before, value]


def _add_entry(made: JsonObject, name: str, field: str, text: str) -> None:
    before = made.setdefault(name, {})
    if not isinstance(before, dict):
        raise _refuse_both(name)
    before[field] = text


def _refuse_both(name: str) -> InvalidRequest:
    return InvalidRequest("must be either an object or a text", field=name)
