from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.responses.includable import ENCRYPTED_REASONING, LOGPROBS, Includable
from ouzel.responses.items.input_schema import Input
from ouzel.responses.items.listed_tools import ListedTools
from ouzel.responses.templates.reference import PromptReference
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
from ouzel.wire.fields import GenerationFields, Labels
from ouzel.wire.tools import GuidesTools, ParallelToolCalls, ToolChoice

Verbosity = Literal["low", "medium", "high"]


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Annotated[
        TextFormat | None,
        Meta(
            description="text, json_object or json_schema; the same as response_format of a chat."
        ),
    ] = None
    verbosity: Annotated[
        Verbosity | None,
        Meta(description="Passed to a chat template that reads it; medium has no effect."),
    ] = None


ReasoningSummary = Annotated[
    Literal["auto", "concise", "detailed"] | None,
    Meta(
        description="Shows the reasoning as a summary too; any value shows the whole text, "
        "unsummarised."
    ),
]


class ReasoningOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    effort: Effort = None
    summary: ReasoningSummary = None
    generate_summary: ReasoningSummary = None
    context: Annotated[
        Literal["auto"] | None,
        Meta(description="The chat template decides how much earlier reasoning the model reads."),
    ] = None

    @property
    def is_summarised(self) -> bool:
        return (self.summary or self.generate_summary) is not None


class ResponseStreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    include_obfuscation: Annotated[
        bool | None,
        Meta(description="Adds random characters to each delta to hide the length of its text."),
    ] = None
    include_usage: Annotated[
        bool | None, Meta(description="Accepted: the last event always has the usage.")
    ] = None


class ConversationReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(description="The id of the conversation.")]


class Compaction(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="compaction"
):
    compact_threshold: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="Number of prompt tokens above which the context is summarised; by "
                "default the largest number that leaves room for max_output_tokens.",
            ),
        ]
        | None
    ) = None


class ResponsesRequest(GenerationFields, kw_only=True):
    input: Input = None
    store: Annotated[
        bool | None,
        Meta(
            description="Stores the response, so that it can be read and continued; default true."
        ),
    ] = None
    background: Annotated[
        bool | None,
        Meta(description="Answers at once and goes on after the client disconnects; needs store."),
    ] = None
    previous_response_id: Annotated[
        str | None, Meta(description="The id of the stored response that the input continues.")
    ] = None
    conversation: Annotated[
        str | ConversationReference | None,
        Meta(
            description="The conversation that the input continues; input and output are added to "
            "it."
        ),
    ] = None
    instructions: Annotated[str | None, Meta(description="A system message before the input.")] = (
        None
    )
    prompt: PromptReference | None = None
    max_output_tokens: (
        Annotated[
            int,
            Meta(
                ge=-1,
                le=2**63 - 1,
                description="Limit of generated tokens, reasoning included; -1 for no limit.",
            ),
        ]
        | None
    ) = None
    text: Annotated[TextOptions | None, Meta(description="The form of the text.")] = None
    reasoning: Annotated[
        ReasoningOptions | None,
        Meta(description="The effort of reasoning, and whether the response shows a summary."),
    ] = None
    include: Annotated[
        list[Includable] | None,
        Meta(
            description="Optional parts of the response: message.output_text.logprobs, "
            "reasoning.encrypted_content, web_search_call.action.sources, "
            "code_interpreter_call.outputs. The other names of OpenAI are accepted: image URLs are "
            "always shown, and the rest belongs to tools that this server does not have."
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
                description="Alternatives per token; needs the logprobs; at most max_logprobs of "
                "the server.",
            ),
        ]
        | None
    ) = None
    truncation: Annotated[
        Literal["auto", "disabled"] | None,
        Meta(
            description="auto leaves out the oldest turns of an input that does not fit; disabled "
            "refuses the input."
        ),
    ] = None
    context_management: (
        Annotated[
            list[Compaction],
            Meta(
                max_length=1,
                description="Summarises a context longer than compact_threshold before the answer.",
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
                description="Limits the calls of tools that this server runs; further calls are "
                "dropped.",
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


def find_hints(fields: ResponsesRequest) -> Iterator[str]:
    """Yields the names of the inner fields that have no effect and are accepted as hints.

    Hints among the fields of the whole body are in `wire.hints`.
    """
    reasoning = fields.reasoning
    if reasoning is not None and "concise" in (reasoning.summary, reasoning.generate_summary):
        yield "reasoning.summary"
    if fields.text is not None and fields.text.verbosity in ("low", "high"):
        yield "text.verbosity"


def encrypts_reasoning(fields: ResponsesRequest) -> bool:
    return ENCRYPTED_REASONING in (fields.include or [])


def find_conversation_id(fields: ResponsesRequest) -> str | None:
    reference = fields.conversation
    return reference.id if isinstance(reference, ConversationReference) else reference
