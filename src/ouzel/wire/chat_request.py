from typing import Annotated

from msgspec import Meta

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
from ouzel.wire.fields import CompletionFields, Labels, LogprobTokenIds
from ouzel.wire.message_schema import Messages
from ouzel.wire.shown_text import Echo, IncludeReasoning, ReasoningFormatName, SeparateReasoning
from ouzel.wire.speculation import PredictedOutput
from ouzel.wire.tools import (
    FunctionCall,
    Functions,
    GuidesTools,
    ParallelToolCalls,
    ToolChoice,
    Tools,
)


class ChatCompletionRequest(CompletionFields, kw_only=True):
    messages: Messages
    store: Annotated[
        bool | None,
        Meta(description="Stores the finished completion with its messages; default false."),
    ] = None
    metadata: (
        Annotated[
            Labels,
            Meta(description="Labels of the stored completion, which lists can be filtered by."),
        ]
        | None
    ) = None
    logprobs: Annotated[
        bool | None, Meta(description="Returns the log probability of every token.")
    ] = None
    top_logprobs: (
        Annotated[
            int,
            Meta(
                ge=-1,
                description="Alternatives per token; needs logprobs; at most the server's "
                "max_logprobs; -1: the whole vocabulary.",
            ),
        ]
        | None
    ) = None
    logprob_token_ids: LogprobTokenIds | None = None
    prediction: PredictedOutput = None
    chat_template: ChatTemplateText = None
    chat_template_kwargs: TemplateKwargs = None
    add_generation_prompt: AddGenerationPrompt = None
    continue_final_message: ContinueFinalMessage = None
    add_special_tokens: AddSpecialTokens = None
    documents: RetrievedDocuments = None
    reasoning_effort: Effort = None
    enable_thinking: Thinking = None
    thinking: Thinking = None
    include_reasoning: IncludeReasoning = None
    separate_reasoning: SeparateReasoning = None
    reasoning_format: ReasoningFormatName = None
    echo: Echo = None
    tools: Tools | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: ParallelToolCalls = None
    enable_tool_guided_generation: GuidesTools = None
    functions: Functions | None = None
    function_call: FunctionCall = None
