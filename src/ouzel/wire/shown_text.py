"""Reads the fields for the parts of a chat answer beside the content: reasoning and an echo."""

from typing import Annotated, Literal, Protocol

from msgspec import Meta

from ouzel.errors import InvalidRequest

ReasoningPlace = Literal["apart", "in_content", "nowhere"]
# llama.cpp's and Groq's values
ReasoningFormat = Literal["auto", "deepseek", "parsed", "none", "raw", "hidden"]

Echo = Annotated[
    bool | None,
    Meta(description="Shows the last message's text before the content, if it is the assistant's."),
]
IncludeReasoning = Annotated[
    bool | None, Meta(description="false hides the reasoning; the model still reasons.")
]
SeparateReasoning = Annotated[
    bool | None,
    Meta(description="false leaves the reasoning in the content, between the model's marks."),
]
ReasoningFormatName = Annotated[
    ReasoningFormat | None,
    Meta(
        description="hidden shows no reasoning; none and raw leave it in the content; "
        "the others are the default."
    ),
]
_PLACES: dict[ReasoningFormat, ReasoningPlace] = {
    "auto": "apart",
    "deepseek": "apart",
    "parsed": "apart",
    "none": "in_content",
    "raw": "in_content",
    "hidden": "nowhere",
}


class ReasoningFields(Protocol):
    include_reasoning: bool | None
    separate_reasoning: bool | None
    reasoning_format: ReasoningFormat | None


def reasoning_place(fields: ReasoningFields) -> ReasoningPlace:
    """Returns the place of the reasoning in an answer.

    Raises InvalidRequest if the fields differ.
    """
    wishes: dict[str, ReasoningPlace] = {}
    if fields.include_reasoning is False:
        wishes["include_reasoning"] = "nowhere"
    if fields.separate_reasoning is False:
        wishes["separate_reasoning"] = "in_content"
    if fields.reasoning_format is not None:
        wishes["reasoning_format"] = _PLACES[fields.reasoning_format]
    if len(set(wishes.values())) > 1:
        first, *_, last = wishes
        raise InvalidRequest(f"contradicts {first}", field=last)
    return next(iter(wishes.values()), "apart")
