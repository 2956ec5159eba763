"""Bodies to request structs; what does not fit becomes an InvalidRequest that names the field, the limit and the value.

Lenient as OpenAI is: 1.0 for an integer, numbers in strings, null for what is absent. A body is parsed once into plain
objects, so that fields we do not know can be named, and the value at fault can be shown.
"""

import logging
import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from ouzel.errors import InvalidRequest

logger = logging.getLogger(__name__)

JsonObject = dict[str, object]
Body = TypeVar("Body", bound=msgspec.Struct)

# Fields that clients know and we do not honour yet, with the values that ask for nothing. null never asks.
NEUTRAL_VALUES: Mapping[str, tuple[object, ...]] = {
    "assistant_confidence_threshold": (),
    "audio": (),
    "bad_words": ([],),
    "best_of": (1,),
    "chat_template": (),
    "continue_final_message": (False,),
    "diversity_penalty": (0,),
    "documents": ([],),
    "early_stopping": (False,),
    "echo": (False,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "max_ngram_size": (),
    "modalities": (["text"],),
    "num_assistant_tokens": (),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "prompt_logprobs": (),
    "response_format": ({"type": "text"},),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "service_tier": ("auto", "default"),
    "spaces_between_special_tokens": (True,),
    "store": (False,),
    "structured_outputs": (),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "truncate_prompt_tokens": (),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
    "web_search_options": (),
}

_TYPE_NAMES = {"int": "an integer", "float": "a number", "str": "a string", "bool": "true or false"} | {
    "array": "a list",
    "object": "an object",
}

# What msgspec says, and how we say it.
_COMPLAINTS = (
    (r"Expected `(?:int|float)` (\S+ \S+)", "must be {}"),
    (r"Expected `\w+` of length (.+)", "must have a length {}"),
    (r"Expected `(.+)`, got `.+`", "must be {}"),
    (r"(Invalid enum value) .*", "must be one of the documented values"),
)
_COMPLAINTS_ABOUT_FIELDS = (
    (r"Object missing required field `(.+)`", "is required"),
    (r"Object contains unknown field `(.+)`", "is not a field of this object"),
)


def decode_body(body: bytes, body_type: type[Body]) -> Body:
    given = _parse(body)
    _refuse_unsupported(given, body_type)
    try:
        decoded = msgspec.convert(given, body_type, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid_request(str(error), given, body_type) from error
    unknown = given.keys() - set(body_type.__struct_encode_fields__) - NEUTRAL_VALUES.keys()
    if unknown:
        logger.info("ignored unknown fields: %s", ", ".join(repr(name[:40]) for name in sorted(unknown)[:20]))
    return decoded


def _parse(body: bytes) -> JsonObject:
    try:
        given = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise InvalidRequest("the body is nested too deeply") from error
    if not isinstance(given, dict):
        raise InvalidRequest(f"the body must be a JSON object, given {_shown(given)}")
    return given


def _refuse_unsupported(given: JsonObject, body_type: type[msgspec.Struct]) -> None:
    for name in given.keys() & NEUTRAL_VALUES.keys():
        value = given[name]
        if name in body_type.__struct_encode_fields__ or value is None or value in NEUTRAL_VALUES[name]:
            continue
        raise InvalidRequest(f"{name} is not supported yet by this server, given {_shown(value)}", param=name)


def _invalid_request(message: str, given: JsonObject, body_type: type[msgspec.Struct]) -> InvalidRequest:
    """Says what msgspec said, in the words of the other errors."""
    what, _, at = message.partition(" - at `$")
    path = at.rstrip("`").lstrip(".")
    if path.endswith("[...]"):
        path = _path_of_entry(path, given, body_type)
    value = _shown(_value_at(path, given))
    for pattern, complaint in _COMPLAINTS:
        if match := re.fullmatch(pattern, what):
            limit = _either(match[1]) if "got" in pattern else match[1]
            return InvalidRequest(f"{path} {complaint.format(limit)}, given {value}", param=path)
    for pattern, complaint in _COMPLAINTS_ABOUT_FIELDS:
        if match := re.fullmatch(pattern, what):
            field = f"{path}.{match[1]}" if path else match[1]
            return InvalidRequest(f"{field} {complaint}", param=field)
    return InvalidRequest(f"{path}: {what}, given {value}", param=path or None)


def _path_of_entry(path: str, given: JsonObject, body_type: type[msgspec.Struct]) -> str:
    """msgspec does not say which entry of an object is at fault: the first that fails alone."""
    field = path.removesuffix("[...]")
    entries = given[field]
    assert isinstance(entries, dict)  # all our maps are at the top level
    for key, value in entries.items():
        try:
            msgspec.convert({**given, field: {key: value}}, body_type, strict=False)
        except msgspec.ValidationError:
            return f"{field}.{key}"
    return field


def _value_at(path: str, given: JsonObject) -> object:
    value: object = given
    for name, position in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and position:
            value = value[int(position)]
    return value


def _either(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"]
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)


def _shown(value: object) -> str:
    """Short, in JSON's words."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:60]}… ({len(text)} characters)"
