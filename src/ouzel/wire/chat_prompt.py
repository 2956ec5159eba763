"""Defines the request fields that shape the prompt of a chat."""

from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from ouzel.generation import ChatRendering
from ouzel.wire.decode import JsonObject

# OpenAI's values
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ThinkingOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reads the form of the switch at some model vendors: `{"type": "enabled"}`."""

    type: Annotated[Literal["enabled", "disabled"], Meta(description="The same as true or false.")]


JsonObjects = list[dict[str, object]]
# Several times the longest template in use. A template of this length compiles within a second.
_MAX_TEMPLATE_CHARS = 131_072
ChatTemplateText = (
    Annotated[
        str,
        Meta(
            max_length=_MAX_TEMPLATE_CHARS,
            description="A Jinja template instead of the model's; needs "
            "--trust-request-chat-template.",
        ),
    ]
    | None
)
TemplateKwargs = Annotated[
    dict[str, object] | None,
    Meta(description="More variables for the chat template, which must read them."),
]
AddGenerationPrompt = Annotated[
    bool | None, Meta(description="Ends the prompt where the answer starts.")
]
ContinueFinalMessage = Annotated[
    bool | None,
    Meta(description="Ends the prompt with the last message's text, which the answer continues."),
]
AddSpecialTokens = Annotated[
    bool | None,
    Meta(description="Adds the tokenizer's special tokens, besides the chat template's own."),
]
RetrievedDocuments = Annotated[
    JsonObjects | None, Meta(description="Passed to the chat template, which must read them.")
]
Effort = Annotated[
    ReasoningEffort | None,
    Meta(
        description="Passed to the chat template, or turned into its switch: none and minimal "
        "switch reasoning off."
    ),
]
Thinking = Annotated[
    bool | ThinkingOption | None,
    Meta(description="The chat template's switch for reasoning; both names set it."),
]


class ChatPromptFields(Protocol):
    """Declares the prompt fields of all chat bodies; a protocol, because a struct has one base."""

    chat_template: str | None
    chat_template_kwargs: dict[str, object] | None
    add_generation_prompt: bool | None
    continue_final_message: bool | None
    add_special_tokens: bool | None
    documents: JsonObjects | None
    reasoning_effort: ReasoningEffort | None
    enable_thinking: bool | ThinkingOption | None
    thinking: bool | ThinkingOption | None


def chat_rendering(fields: ChatPromptFields, *, tools: JsonObjects | None = None) -> ChatRendering:
    return ChatRendering(
        tools=tools,
        documents=fields.documents,
        template_kwargs=fields.chat_template_kwargs or {},
        chat_template=fields.chat_template,
        add_generation_prompt=fields.add_generation_prompt,
        continue_final_message=fields.continue_final_message or False,
        add_special_tokens=fields.add_special_tokens or False,
        reasoning_effort=fields.reasoning_effort,
        enable_thinking=_is_enabled(fields.enable_thinking),
        thinking=_is_enabled(fields.thinking),
    )


def has_own_template(fields: JsonObject) -> bool:
    """Tells whether a request body, parsed but not decoded, has a chat template."""
    return fields.get("chat_template") is not None


def _is_enabled(option: bool | ThinkingOption | None) -> bool | None:
    return option.type == "enabled" if isinstance(option, ThinkingOption) else option
