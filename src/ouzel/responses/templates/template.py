"""Describes prompt templates, and reads them from the content of a file.

1.  A file is a list of templates. A template has an id and versions.
2.  A version has `instructions`, `messages`, or both; `{{name}}` in their texts is a variable. All
    its other keys are fields of a response that hold where a request leaves them out.
3.  Everything that needs no model is checked when the file is read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ouzel.errors import InvalidRequest
from ouzel.responses.item_fields import MEDIA
from ouzel.responses.request import ResponsesRequest
from ouzel.wire.decode import JsonObject, decode_object
from ouzel.wire.validation_errors import show_value

# A request's other fields: they are about one request, or about the model that answers it.
DEFAULTS = frozenset(
    {
        "frequency_penalty",
        "include",
        "max_output_tokens",
        "max_tool_calls",
        "min_p",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning",
        "repetition_penalty",
        "seed",
        "stop",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
_TEMPLATE_KEYS = frozenset({"id", "description", "default_version", "versions"})
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ROLES = ("system", "developer", "user", "assistant")
_OPEN = "{{"
_TEXT = "input_text"
VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]{0,63})\s*\}\}")


@dataclass(frozen=True, slots=True)
class PromptVersion:
    name: str
    instructions: str | None
    messages: tuple[JsonObject, ...]  # content: a text of the assistant, or a list of parts
    defaults: JsonObject
    variables: tuple[str, ...]  # the texts have this order


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    id: str
    description: str
    versions: Mapping[str, PromptVersion]
    default_version: str


Templates = Mapping[str, PromptTemplate]  # id -> template


def read_templates(content: object) -> list[PromptTemplate]:
    """Reads the content of a file. Raises InvalidRequest, which names template and fault."""
    if not isinstance(content, list):
        raise InvalidRequest(f"the file must hold a list of prompts, given {show_value(content)}")
    return [_read_template(value, f"prompts[{place}]") for place, value in enumerate(content)]


def _read_template(value: object, path: str) -> PromptTemplate:
    fields = _read_object(value, path)
    _refuse_unknown(fields.keys() - _TEMPLATE_KEYS, path)
    prompt_id = fields.get("id")
    if not isinstance(prompt_id, str) or not _ID.fullmatch(prompt_id):
        limit = "must be 1 to 64 letters, digits, dots, hyphens and underscores"
        raise InvalidRequest(f"{limit}, given {show_value(prompt_id)}", field=f"{path}.id")
    description = fields.get("description", "")
    if not isinstance(description, str):
        raise InvalidRequest(
            f"must be a text, given {show_value(description)}", field=f"{path}.description"
        )
    path = f"prompt {prompt_id}"
    versions = _read_versions(fields.get("versions"), path)
    default = _read_version_name(
        fields.get("default_version", list(versions)[-1]), f"{path}: default_version"
    )
    if default not in versions:
        raise InvalidRequest(
            f"must be one of {', '.join(versions)}, given {default}",
            field=f"{path}: default_version",
        )
    return PromptTemplate(prompt_id, description, versions, default)


def _read_versions(value: object, path: str) -> dict[str, PromptVersion]:
    if not isinstance(value, list) or not value:
        raise InvalidRequest(
            f"must be a list of at least one version, given {show_value(value)}",
            field=f"{path}: versions",
        )
    versions: dict[str, PromptVersion] = {}
    for place, each in enumerate(value):
        at = f"{path}: versions[{place}]"
        fields = _read_object(each, at)
        name = _read_version_name(fields.get("version"), f"{at}.version")
        if name in versions:
            raise InvalidRequest(f"must differ from the other versions, given {name}", field=at)
        versions[name] = _read_version(name, fields, f"{path}, version {name}")
    return versions


def _read_version_name(value: object, path: str) -> str:
    """Returns a version as a text: YAML reads `2` as an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidRequest(f"must be a text or an integer, given {show_value(value)}", field=path)
    return value


def _read_version(name: str, fields: JsonObject, path: str) -> PromptVersion:
    instructions = fields.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        raise InvalidRequest(
            f"must be a text, given {show_value(instructions)}", field=f"{path}: instructions"
        )
    messages = _read_messages(fields.get("messages"), f"{path}: messages")
    if not instructions and not messages:
        raise InvalidRequest("needs instructions or messages", field=f"{path}:")
    defaults = {
        key: value
        for key, value in fields.items()
        if key not in ("version", "instructions", "messages") and value is not None
    }
    _check_defaults(defaults, path)
    variables: dict[str, None] = {}  # an ordered set
    for at, text in _list_texts(instructions, messages):
        variables |= dict.fromkeys(_find_variables(text, f"{path}: {at}"))
    return PromptVersion(name, instructions, messages, defaults, tuple(variables))


def _read_messages(value: object, path: str) -> tuple[JsonObject, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidRequest(f"must be a list, given {show_value(value)}", field=path)
    messages: list[JsonObject] = []
    for place, each in enumerate(value):
        at = f"{path}[{place}]"
        fields = _read_object(each, at)
        _refuse_unknown(fields.keys() - {"role", "content"}, at)
        role = fields.get("role")
        if role not in _ROLES:
            raise InvalidRequest(
                f"must be one of {', '.join(_ROLES)}, given {show_value(role)}", field=f"{at}.role"
            )
        is_assistant = role == "assistant"
        content = _read_content(fields.get("content"), f"{at}.content", is_assistant=is_assistant)
        messages.append({"type": "message", "role": role, "content": content})
    return tuple(messages)


def _read_content(value: object, path: str, *, is_assistant: bool) -> str | list[JsonObject]:
    """Returns the text of the assistant, or a list of parts: the API shows both in these forms."""
    if isinstance(value, str) and value:
        return value if is_assistant else [{"type": _TEXT, "text": value}]
    if not isinstance(value, list) or not value or is_assistant:
        limit = "a text" if is_assistant else "a text or a list of parts"
        raise InvalidRequest(f"must be {limit}, given {show_value(value)}", field=path)
    return [_read_part(each, f"{path}[{place}]") for place, each in enumerate(value)]


def _read_part(value: object, path: str) -> JsonObject:
    part = _read_object(value, path)
    kind, text = part.get("type"), part.get("text")
    if kind not in (_TEXT, *MEDIA):
        limit = f"must be one of {', '.join((_TEXT, *MEDIA))}"
        raise InvalidRequest(f"{limit}, given {show_value(kind)}", field=f"{path}.type")
    if kind == _TEXT and not isinstance(text, str):
        raise InvalidRequest(f"must be a text, given {show_value(text)}", field=f"{path}.text")
    return part


def _check_defaults(defaults: JsonObject, path: str) -> None:
    """Checks the fields of a response; the limits of the model are checked for each request."""
    unknown = sorted(defaults.keys() - DEFAULTS)
    if unknown:
        raise InvalidRequest(
            f"is no field that a template can set; it can set instructions, messages, "
            f"{', '.join(sorted(DEFAULTS))}",
            field=f"{path}: {unknown[0]}",
        )
    try:
        decode_object(defaults, ResponsesRequest)
    except InvalidRequest as error:
        raise error.at(f"{path}: {error.param}") from error.__cause__


def _list_texts(
    instructions: str | None, messages: tuple[JsonObject, ...]
) -> Iterator[tuple[str, str]]:
    """Yields each text in which variables may stand, after its place."""
    if instructions is not None:
        yield "instructions", instructions
    for place, message in enumerate(messages):
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": _TEXT, "text": content}]
        for part in parts:
            if part["type"] == _TEXT:
                yield f"messages[{place}].content", str(part["text"])


def _find_variables(text: str, path: str) -> Iterator[str]:
    """Yields the names of the variables. Raises InvalidRequest for `{{` that begins none."""
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        match = VARIABLE.match(text, start)
        if match is None:
            raise InvalidRequest(
                f"must have a variable behind each {_OPEN}, like {_OPEN}name}}}}, given "
                f"{show_value(text[start : start + 40])}",
                field=path,
            )
        yield match[1]
        position = match.end()


def _read_object(value: object, path: str) -> JsonObject:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidRequest(f"must be a mapping of names, given {show_value(value)}", field=path)
    return value


def _refuse_unknown(names: set[str], path: str) -> None:
    for name in sorted(names):
        raise InvalidRequest("is not a key of this mapping", field=f"{path}.{name}")
