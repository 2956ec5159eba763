from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.responses.includable import ENCRYPTED_REASONING, LOGPROBS, Includable
from ouzel.responses.items.input_schema import Input
from ouzel.responses.items.listed_tools import ListedTools
from ouzel.responses.text_format import TextFormat
from ouzel.wire.chat_prompt import (
    AddGenerationPrompt,
    AddSpecialTokens,
    ChatTemplateText,
    ContinueFinalMessage,
    Effort,
    RetrievedDocuments,
    TemplateKwargs,
    Thinking,
)
from ouzel.wire.fields import GenerationFields
from ouzel.wire.tools import GuidesTools, ParallelToolCalls, ToolChoice

Verbosity = Literal["low", "medium", "high"]
Labels = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
    Meta(max_length=16),
]


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Annotated[
        TextFormat | None,
        Meta(description="text, json_object or json_schema; the server's form of response_format."),
    ] = None
    verbosity: Annotated[
        Verbosity | None,
        Meta(description="Passed to the chat template, if it reads it; medium asks for nothing."),
    ] = None


ReasoningSummary = Annotated[
    Literal["auto", "concise", "detailed"] | None,
    Meta(
        description="Shows the reasoning as a summary too: its own text whichever, nothing is summarised."
    ),
]


class ReasoningOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    effort: Effort = None
    summary: ReasoningSummary = None
    generate_summary: ReasoningSummary = None
    context: Annotated[
        Literal["auto"] | None,
        Meta(description="Which earlier reasoning is shown to the model: the template decides."),
    ] = None

    @property
    def is_summarised(self) -> bool:
        return (self.summary or self.generate_summary) is not None


class ResponseStreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    include_obfuscation: Annotated[
        bool | None,
        Meta(description="Random characters beside each delta, so that sizes tell less."),
    ] = None
    include_usage: Annotated[
        bool | None, Meta(description="Taken: the last event always has the usage.")
    ] = None


class ConversationReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(description="Of the conversation.")]


class Compaction(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="compaction"
):
    compact_threshold: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="Tokens of a prompt; without it what leaves no room for the answer.",
            ),
        ]
        | None
    ) = None


class ResponsesRequest(GenerationFields, kw_only=True):
    input: Input = None
    store: Annotated[
        bool | None,
        Meta(
            description="Keeps the response, so that it can be read and continued; true without it."
        ),
    ] = None
    background: Annotated[
        bool | None,
        Meta(
            description="Answers at once, and goes on when the client leaves; needs the response kept."
        ),
    ] = None
    previous_response_id: Annotated[
        str | None, Meta(description="The kept response that the input continues.")
    ] = None
    conversation: Annotated[
        str | ConversationReference | None,
        Meta(
            description="The conversation that the input continues, and that grows by input and output."
        ),
    ] = None
    instructions: Annotated[str | None, Meta(description="A system message before the input.")] = (
        None
    )
    max_output_tokens: (
        Annotated[
            int,
            Meta(
                ge=-1,
                le=2**63 - 1,
                description="Limit of generated tokens, reasoning among them; -1: none.",
            ),
        ]
        | None
    ) = None
    text: Annotated[TextOptions | None, Meta(description="The form of the text.")] = None
    reasoning: Annotated[
        ReasoningOptions | None, Meta(description="How much is thought, and what is shown of it.")
    ] = None
    include: Annotated[
        list[Includable] | None,
        Meta(
            description="What the response shows beside the text: message.output_text.logprobs, "
            "reasoning.encrypted_content; the others are taken: URLs of pictures are always shown, and nothing here "
            "has what the rest asks for."
        ),
    ] = None
    logprobs: Annotated[
        bool | None, Meta(description="The same as include with message.output_text.logprobs.")
    ] = None
    top_logprobs: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="Alternatives per token; needs the logprobs; at most the server's max_logprobs.",
            ),
        ]
        | None
    ) = None
    truncation: Annotated[
        Literal["auto", "disabled"] | None,
        Meta(
            description="auto leaves out the oldest turns of an input that does not fit; disabled refuses it."
        ),
    ] = None
    context_management: (
        Annotated[
            list[Compaction],
            Meta(
                max_length=1,
                description="What is longer than compact_threshold is summarised before it is answered.",
            ),
        ]
        | None
    ) = None
    tools: ListedTools | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: ParallelToolCalls = None
    max_tool_calls: (
        Annotated[
            int,
            Meta(
                ge=1,
                lt=2**31,
                description="Limits calls of tools that a server runs; this one has none.",
            ),
        ]
        | None
    ) = None
    enable_tool_guided_generation: GuidesTools = None
    stream_options: Annotated[
        ResponseStreamOptions | None, Meta(description="Only with stream.")
    ] = None
    metadata: Annotated[Labels, Meta(description="Labels; the response repeats them.")] | None = (
        None
    )
    chat_template: ChatTemplateText = None
    chat_template_kwargs: TemplateKwargs = None
    add_generation_prompt: AddGenerationPrompt = None
    continue_final_message: ContinueFinalMessage = None
    add_special_tokens: AddSpecialTokens = None
    documents: RetrievedDocuments = None
    reasoning_effort: Effort = None
    enable_thinking: Thinking = None
    thinking: Thinking = None


def shows_logprobs(fields: ResponsesRequest) -> bool:
    return bool(fields.logprobs) or LOGPROBS in (fields.include or [])


def hints_in(fields: ResponsesRequest) -> Iterator[str]:
    """Yields the names of the inner fields that are hints here; those of a whole body are in `wire.hints`."""
    if fields.reasoning is not None and "concise" in (
        fields.reasoning.summary,
        fields.reasoning.generate_summary,
    ):
        yield "reasoning.summary"
    if fields.text is not None and fields.text.verbosity in ("low", "high"):
        yield "text.verbosity"


def encrypts_reasoning(fields: ResponsesRequest) -> bool:
    return ENCRYPTED_REASONING in (fields.include or [])


def conversation_id_of(fields: ResponsesRequest) -> str | None:
    reference = fields.conversation
    return reference.id if isinstance(reference, ConversationReference) else reference
