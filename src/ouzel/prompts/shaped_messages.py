"""Brings normalised messages into the form that the model's template reads."""

import json
import re
from collections.abc import Sequence

from ouzel.errors import InvalidRequest
from ouzel.prompts.marked_text import bare
from ouzel.prompts.messages import MEDIA, Message
from ouzel.prompts.template import Template
from ouzel.prompts.template_trials.capabilities import REASONING_KEYS, TemplateCapabilities

# Roles with a known treatment; the template must show any other role.
COMMON_ROLES = ("system", "developer", "user", "assistant", "tool")

_ROLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # keeps a template's markup out of roles


def shape_messages(messages: list[Message], template: Template) -> list[Message]:
    return [
        _shape(message, template, f"messages[{position}]")
        for position, message in enumerate(messages)
    ]


def repeat_media_parts(messages: list[Message], num_images: Sequence[int]) -> list[Message]:
    """Repeats each media part once per image, such as a PDF once per page.

    `num_images` has one number for each media part of all messages together.
    """
    nums = iter(num_images)

    def repeat(part: Message) -> list[Message]:
        return [part] * (1 if part["type"] == "text" else next(nums))

    def repeat_in(parts: object) -> object:
        if not isinstance(parts, list):
            return parts
        return [each for part in parts for each in repeat(part)]

    return [{**message, "content": repeat_in(message["content"])} for message in messages]


def uncommon_roles(messages: list[Message]) -> frozenset[str]:
    """Returns the roles outside COMMON_ROLES; the template decides whether it shows them."""
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
    """Raises InvalidRequest for a message that the template would leave out silently."""
    role = message["role"]
    if role == "system" and not capabilities.system_role:
        raise InvalidRequest(
            ": this model's chat template has no system messages", field=f"{path}.role"
        )
    if role == "assistant" and capabilities.drops_answers:
        raise InvalidRequest(
            ": this model's chat template has no earlier answers", field=f"{path}.role"
        )
    if role == "user" and capabilities.shows_sounds_alone:
        _refuse_texts(message["content"], f"{path}.content")
    if role == "tool" and capabilities.drops_tool_results:
        raise InvalidRequest(
            ": this model's chat template has no tool results", field=f"{path}.role"
        )
    if message.get("tool_calls") and capabilities.drops_tool_calls:
        where = f"{path}.tool_calls"
        raise InvalidRequest(": this model's chat template has no tool calls", field=where)


def _refuse_texts(content: object, path: str) -> None:
    """Raises InvalidRequest for a text, with the path of its part."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for position, part in enumerate(parts):
        text = part.get("text")
        if isinstance(text, str) and bare(text).strip():
            where = f"{path}[{position}].text" if isinstance(content, list) else path
            raise InvalidRequest(
                ": this model's chat template shows users' sounds, and no texts of users",
                field=where,
            )


def _role(role: object, template: Template, path: str) -> object:
    if role == "developer" and not template.capabilities.developer_role:
        return "system"  # the older name of the same role
    assert isinstance(role, str)
    if role not in COMMON_ROLES and not (_ROLE_NAME.fullmatch(role) and template.shows_role(role)):
        known = ", ".join(COMMON_ROLES)
        raise InvalidRequest(f'must be one of {known}, given "{role[:40]}"', field=path)
    return role


def _rename_reasoning(message: Message, key: str) -> None:
    """Copies earlier reasoning to the key that the template reads."""
    texts = [message[name] for name in REASONING_KEYS if isinstance(message.get(name), str)]
    if key and texts:
        message.setdefault(key, texts[0])


def _content(content: object, capabilities: TemplateCapabilities, path: str) -> object:
    """Converts a content to the form that the template reads: a string or parts.

    Text parts are joined with a line break, as in OVMS, LMI and vLLM. Pictures, videos and sounds
    need a template that reads parts. A PDF counts as one picture here; `repeat_media_parts` adds
    its pages.
    """
    if isinstance(content, list) and any(part["type"] in MEDIA for part in content):
        if not (capabilities.takes_content_parts or capabilities.shows_sounds_alone):
            raise InvalidRequest(
                ": this model's chat template has no pictures or sounds", field=f"{path}.content"
            )
        return [_show_media(part) for part in content]
    if capabilities.takes_string_content or not capabilities.takes_content_parts:
        return "\n".join(part["text"] for part in content) if isinstance(content, list) else content
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _show_media(part: Message) -> Message:
    """Returns the form in which templates find a picture, a video or a sound; texts stay."""
    kind = MEDIA.get(str(part["type"]))
    if kind is None:
        return part
    # Some templates, as Qwen2-Audio's, find a sound by its key.
    return {"type": kind, "audio": ""} if kind == "audio" else {"type": kind}


def _shape_call(call: dict[str, object], wants_objects: bool) -> dict[str, object]:
    function = call["function"]
    assert isinstance(function, dict)
    arguments = function["arguments"]
    if wants_objects and isinstance(arguments, str):
        arguments = _parse_object(arguments)
    elif not wants_objects and isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": arguments}}


def _parse_object(arguments: str) -> object:
    """Returns the parsed JSON object, or the text unchanged if the model did not write one."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments
