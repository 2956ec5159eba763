"""Turns the settings of a chat's rendering into template variables.

- A variable that the template does not read would be ignored, so it is refused, unless it is a
  hint.
- A request for no reasoning is accepted for a model that does not reason (docs/decisions/0005).
- A template calls its switch for reasoning `enable_thinking` or `thinking`; requests may use
  either.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import Documents, Tools
from ouzel.prompts.template import Template

_SWITCHES = ("enable_thinking", "thinking")
_EFFORTS_WITHOUT_REASONING = ("none", "minimal")
# A template without this variable ends where the answer starts, or never does.
_ALWAYS_READ = ("add_generation_prompt",)
_KWARGS = "chat_template_kwargs"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRendering:
    """Holds the settings of a request for rendering its chat.

    A field that is None was not sent; the template variable of the same name may be in
    `template_kwargs` instead.
    """

    tools: Tools | None = None
    documents: Documents | None = None
    template_kwargs: Mapping[str, object] = field(default_factory=dict)
    # variables that are passed only to a template that reads them
    hints: Mapping[str, object] = field(default_factory=dict)
    # ignores template_kwargs and reasoning_effort that the template does not read, instead of
    # refusing
    drops_unread: bool = False
    chat_template: str | None = None  # replaces the model's template
    # whether the prompt ends where the answer starts; None stands for true
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False  # ends the prompt with the last message's text
    add_special_tokens: bool = False  # adds the tokenizer's special tokens to the rendered text
    reasoning_effort: str | None = None
    enable_thinking: bool | None = None
    thinking: bool | None = None


def template_variables(rendering: ChatRendering, template: Template) -> dict[str, object]:
    """Returns the variables for the template.

    Raises InvalidRequest for a variable that the template would ignore, and for two different
    values of one variable.
    """
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
                    "contradicts the value in chat_template_kwargs or in another field", field=path
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


def list_reasoning_efforts(template: Template) -> tuple[str, ...]:
    """Returns the efforts of reasoning between which the template distinguishes, lowest first."""
    read = template.variables_read()
    has_switch = any(switch in read for switch in _SWITCHES)
    efforts = ("low", "medium", "high") if "reasoning_effort" in read else ()
    if not has_switch:
        return efforts
    return ("none", *(efforts or ("medium",)))


def _requested_variables(
    rendering: ChatRendering, template: Template
) -> Iterator[tuple[str, str, object]]:
    """Yields the path in the request, the name and the value of each requested variable."""
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
    """Translates a variable into the variables that the template reads.

    Returns an empty dictionary if nothing needs to be set, and None if the template cannot honour
    it.
    """
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
    """Returns the switch for reasoning, turned on, if the request sets only the effort and the
    template reads both.
    """
    switch = next((switch for switch in _SWITCHES if switch in read), None)
    is_set = any(name in variables for name in _SWITCHES)
    effort = variables.get("reasoning_effort")
    if switch is None or is_set or not _wants_reasoning("reasoning_effort", effort):
        return {}
    return {switch: True}


def _wants_reasoning(name: str, value: object) -> bool | None:
    """Tells whether a template variable turns reasoning on or off; None if it does neither."""
    if name in _SWITCHES and isinstance(value, bool):
        return value
    if name == "reasoning_effort" and isinstance(value, str):
        return value not in _EFFORTS_WITHOUT_REASONING
    return None
