"""Normalised messages are brought into the form that the model's template reads."""

import json
import re
from collections.abc import Sequence

from ouzel.errors import InvalidRequest
from ouzel.prompts.messages import MEDIA, Message
from ouzel.prompts.template import Template
from ouzel.prompts.template_trials.capabilities import REASONING_KEYS, TemplateCapabilities

# Roles whose treatment is known; any other must be one that the template shows.
COMMON_ROLES = ("system", "developer", "user", "assistant", "tool")

_ROLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # a role is no place for the template's own markup


def shape_messages(messages: list[Message], template: Template) -> list[Message]:
    return [
        _shape(message, template, f"messages[{position}]")
        for position, message in enumerate(messages)
    ]


def with_pages(messages: list[Message], num_images: Sequence[int]) -> list[Message]:
    """Repeats each part that is no text as often as it has images: those of all messages are numbered together."""
    nums = iter(num_images)

    def repeated(part: Message) -> list[Message]:
        return [part] * (1 if part["type"] == "text" else next(nums))

    def content(message: Message) -> object:
        parts = message["content"]
        return (
            [each for part in parts for each in repeated(part)]
            if isinstance(parts, list)
            else parts
        )

    return [{**message, "content": content(message)} for message in messages]


def uncommon_roles(messages: list[Message]) -> frozenset[str]:
    """Returns the roles of which it is for the template to say whether it shows them."""
    roles = {str(message["role"]) for message in messages}
    return frozenset(role for role in roles - {*COMMON_ROLES} if _ROLE_NAME.fullmatch(role))


def _shape(message: Message, template: Template, path: str) -> Message:
    shaped = {**message, "role": _role(message["role"], template, f"{path}.role")}
    _check_shown(shaped, template.capabilities, path)
    _rename_reasoning(shaped, template.capabilities.reasoning_key)
    shaped["content"] = _content(message["content"], template.capabilities, path)
    tool_calls = message.get("tool_calls")
    if isinstance(tool_calls, list):
        wants_objects = template.capabilities.object_arguments
        shaped["tool_calls"] = [_shape_call(call, wants_objects) for call in tool_calls]
    return shaped


def _check_shown(message: Message, capabilities: TemplateCapabilities, path: str) -> None:
    """Raises InvalidRequest for what the template would leave out silently: the answer would ignore it."""
    role = message["role"]
    if role == "system" and not capabilities.system_role:
        raise InvalidRequest(
            ": this model's chat template has no system messages", field=f"{path}.role"
        )
    if role == "tool" and capabilities.drops_tool_results:
        raise InvalidRequest(
            ": this model's chat template has no tool results", field=f"{path}.role"
        )
    if message.get("tool_calls") and capabilities.drops_tool_calls:
        where = f"{path}.tool_calls"
        raise InvalidRequest(": this model's chat template has no tool calls", field=where)


def _role(role: object, template: Template, path: str) -> object:
    if role == "developer" and not template.capabilities.developer_role:
        return "system"  # the name that the same thing had before
    assert isinstance(role, str)
    if role not in COMMON_ROLES and not (_ROLE_NAME.fullmatch(role) and template.shows_role(role)):
        known = ", ".join(COMMON_ROLES)
        raise InvalidRequest(f'must be one of {known}, given "{role[:40]}"', field=path)
    return role


def _rename_reasoning(message: Message, key: str) -> None:
    """Gives earlier reasoning the name that the template reads."""
    texts = [message[name] for name in REASONING_KEYS if isinstance(message.get(name), str)]
    if key and texts:
        message.setdefault(key, texts[0])


def _content(content: object, capabilities: TemplateCapabilities, path: str) -> object:
    """Text parts are joined by a line break, as OVMS, LMI and vLLM do; templates that read parts only get parts.

    Pictures and videos are shown as parts only, and a PDF is one picture, before its pages are counted.
    """
    if isinstance(content, list) and any(part["type"] in MEDIA for part in content):
        if not capabilities.takes_content_parts:
            raise InvalidRequest(
                ": this model's chat template has no pictures", field=f"{path}.content"
            )
        return [
            {"type": MEDIA[part["type"]]} if part["type"] in MEDIA else part for part in content
        ]
    if capabilities.takes_string_content or not capabilities.takes_content_parts:
        return "\n".join(part["text"] for part in content) if isinstance(content, list) else content
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _shape_call(call: dict[str, object], wants_objects: bool) -> dict[str, object]:
    function = call["function"]
    assert isinstance(function, dict)
    arguments = function["arguments"]
    if wants_objects and isinstance(arguments, str):
        arguments = _parsed(arguments)
    elif not wants_objects and isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": arguments}}


def _parsed(arguments: str) -> object:
    """Returns the text as it is when it is no JSON object: the model wrote it that way, and the chat goes on."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments
