"""A request says how it wants its chat rendered, and the template gets the variables that it reads for that.

A variable that the template does not read would be ignored, so it is refused, unless it is a hint. Asking a model that
does not reason not to reason asks for nothing (docs/decisions/0005). A template's switch for reasoning goes by either
of two names.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import Documents, Tools
from ouzel.prompts.template import Template

_SWITCHES = ("enable_thinking", "thinking")
_EFFORTS_WITHOUT_REASONING = ("none", "minimal")
_ALWAYS_READ = (
    "add_generation_prompt",
)  # a template without it ends where the answer starts, or never does
_KWARGS = "chat_template_kwargs"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRendering:
    """A field that is None was not sent; the template's variable of its name may be among `template_kwargs` instead."""

    tools: Tools | None = None
    documents: Documents | None = None
    template_kwargs: Mapping[str, object] = field(default_factory=dict)
    hints: Mapping[str, object] = field(
        default_factory=dict
    )  # the same, for a template that reads them
    # template_kwargs and reasoning_effort have no effect where the template ignores them
    drops_unread: bool = False
    chat_template: str | None = None  # instead of the model's
    # ends the prompt where the answer starts; true when nobody says
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False  # ends the prompt with the last message's text
    add_special_tokens: bool = False  # the tokenizer's, around what the template wrote
    reasoning_effort: str | None = None
    enable_thinking: bool | None = None
    thinking: bool | None = None


def template_variables(rendering: ChatRendering, template: Template) -> dict[str, object]:
    """Raises InvalidRequest for what the template would ignore, and for what is sent twice and differs."""
    read = template.variables_read(tools=rendering.tools, documents=rendering.documents)
    variables: dict[str, object] = {}
    unread: list[str] = []
    for path, name, value in _requested_variables(rendering, template):
        as_read = _as_read(name, value, read, template)
        if as_read is None:
            may_drop = name == "reasoning_effort" or path.startswith(_KWARGS)
            if not (rendering.drops_unread and may_drop):
                raise InvalidRequest(
                    f"has no effect: this model's chat template does not read {name[:60]}",
                    field=path,
                )
            unread.append(path)
            continue
        for own_name, own_value in as_read.items():
            if variables.setdefault(own_name, own_value) != own_value:
                raise InvalidRequest(
                    "contradicts what chat_template_kwargs or another field says", field=path
                )
    if unread:
        logger.info("the chat template does not read %s", ", ".join(map(repr, unread[:20])))
    variables |= _switch_beside_effort(variables, read)
    for name, value in rendering.hints.items():
        if name in read:
            variables.setdefault(name, value)
    if rendering.continue_final_message:
        if variables.get("add_generation_prompt"):
            field_ = "continue_final_message"
            raise InvalidRequest(
                "must not be true when add_generation_prompt is true", field=field_
            )
        variables["add_generation_prompt"] = False
    return variables


def _requested_variables(
    rendering: ChatRendering, template: Template
) -> Iterator[tuple[str, str, object]]:
    """Yields the path in the request, the name and the value of each."""
    for name, value in rendering.template_kwargs.items():
        path = f"{_KWARGS}.{name[:60]}"
        if name in template.reserved_names:
            raise InvalidRequest(
                f"must not be given: the server itself provides {name}", field=path
            )
        if name == "add_generation_prompt" and not isinstance(value, bool):
            raise InvalidRequest("must be true or false", field=path)
        if value is not None:
            yield path, name, value
    fields: dict[str, object] = {
        "add_generation_prompt": rendering.add_generation_prompt,
        "documents": rendering.documents or None,
        "reasoning_effort": rendering.reasoning_effort,
        "enable_thinking": rendering.enable_thinking,
        "thinking": rendering.thinking,
    }
    for name, value in fields.items():
        if value is not None:
            yield name, name, value


def _as_read(
    name: str, value: object, read: frozenset[str], template: Template
) -> dict[str, object] | None:
    """Returns the same wish in the variables that the template has for it, None where the template has none."""
    switch = next((switch for switch in _SWITCHES if switch in read), None)
    if name in read or name in _ALWAYS_READ:
        turns_off = switch is not None and name == "reasoning_effort" and value == "none"
        return {name: value, switch: False} if turns_off and switch is not None else {name: value}
    wants_reasoning = _wants_reasoning(name, value)
    if switch is not None and wants_reasoning is not None:
        return {switch: wants_reasoning}
    if wants_reasoning is False and not template.reasons:
        return {}
    return None


def _switch_beside_effort(variables: Mapping[str, object], read: frozenset[str]) -> dict[str, bool]:
    """Returns the switch that must be on where the template reads an effort and a switch, and the switch is not set."""
    switch = next((switch for switch in _SWITCHES if switch in read), None)
    is_set = any(name in variables for name in _SWITCHES)
    if (
        switch is None
        or is_set
        or not _wants_reasoning("reasoning_effort", variables.get("reasoning_effort"))
    ):
        return {}
    return {switch: True}


def _wants_reasoning(name: str, value: object) -> bool | None:
    """Returns None where the variable says nothing about that."""
    if name in _SWITCHES and isinstance(value, bool):
        return value
    if name == "reasoning_effort" and isinstance(value, str):
        return value not in _EFFORTS_WITHOUT_REASONING
    return None
