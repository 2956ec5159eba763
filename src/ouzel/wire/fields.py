"""Defines the request fields that all generating endpoints share."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.wire.choice_fields import ChoiceFields
from ouzel.wire.model_name import ModelName
from ouzel.wire.response_form import (
    Choices,
    Grammar,
    GrammarText,
    Pattern,
    ResponseFormat,
    Schema,
    StructuredOutputs,
)
from ouzel.wire.speculation import ConfidenceThreshold, MaxNgramSize, NumAssistantTokens

_MOST_TOKENS = 2**63 - 1

StopString = Annotated[
    str, Meta(min_length=1, max_length=256, description="Text that ends the output.")
]


Labels = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
    Meta(max_length=16),
]
LogprobTokenIds = Annotated[
    list[Annotated[int, Meta(ge=0)]],
    Meta(
        max_length=128,
        description="Adds these tokens to the alternatives of every output token at any "
        "rank; needs logprobs.",
    ),
]


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    include_usage: Annotated[
        bool | None, Meta(description="Sends a last chunk with the usage.")
    ] = None
    continuous_usage_stats: Annotated[
        bool | None, Meta(description="Sends the usage so far in every chunk.")
    ] = None
    include_obfuscation: Annotated[bool | None, Meta(description="Only false is supported.")] = None


class GenerationFields(ChoiceFields, kw_only=True):
    """The fields of all generating endpoints.

    `None` means that the client did not set the field.
    """

    model: ModelName = None
    max_tokens: (
        Annotated[
            int,
            Meta(
                ge=-1,
                le=_MOST_TOKENS,
                description="Limit of generated tokens; -1: as many as fit after the prompt; "
                "0: only computes the prompt, to score it.",
            ),
        ]
        | None
    ) = None
    max_completion_tokens: (
        Annotated[
            int, Meta(ge=-1, le=_MOST_TOKENS, description="The same as max_tokens; overrides it.")
        ]
        | None
    ) = None
    thinking_token_budget: (
        Annotated[
            int,
            Meta(
                ge=-1,
                le=2**31 - 1,
                description="Most tokens of reasoning; at the limit the server writes the end of "
                "reasoning, and the answer follows. -1: no limit.",
            ),
        ]
        | None
    ) = None
    stop: StopString | Annotated[list[StopString], Meta(max_length=64)] | None = None
    include_stop_str_in_output: Annotated[
        bool | None, Meta(description="Keeps the stop string at the end of the output.")
    ] = None
    skip_special_tokens: Annotated[
        bool | None, Meta(description="Leaves special tokens out of the text.")
    ] = None
    truncate_prompt_tokens: (
        Annotated[
            int,
            Meta(
                ge=-1,
                description="Keeps this number of prompt tokens; -1: as many as fit beside "
                "max_tokens.",
            ),
        ]
        | None
    ) = None
    truncation_side: Annotated[
        Literal["left", "right"] | None, Meta(description="The side that loses tokens.")
    ] = None
    return_tokens_as_token_ids: Annotated[
        bool | None, Meta(description='Tokens in logprobs are "token_id:123" rather than texts.')
    ] = None
    return_token_ids: Annotated[
        bool | None, Meta(description="Returns the token ids of prompt and output.")
    ] = None
    spaces_between_special_tokens: Annotated[
        bool | None,
        Meta(description="False only with tokenizers that write no spaces between special tokens."),
    ] = None
    stream: Annotated[bool | None, Meta(description="Sends chunks as server-sent events.")] = None
    priority: (
        Annotated[
            int,
            Meta(ge=-(2**31), lt=2**31, description="Requests with a smaller number run first."),
        ]
        | None
    ) = None
    cache_salt: (
        Annotated[
            str,
            Meta(
                max_length=256,
                description="Cached prompts are shared only under the same salt (and API key).",
            ),
        ]
        | None
    ) = None
    num_assistant_tokens: NumAssistantTokens = None
    assistant_confidence_threshold: ConfidenceThreshold = None
    max_ngram_size: MaxNgramSize = None
    response_format: ResponseFormat | None = None
    structured_outputs: Annotated[
        StructuredOutputs | None, Meta(description="A form of the output, as vLLM takes it.")
    ] = None
    guided_json: Schema = None
    guided_regex: Pattern | None = None
    guided_choice: Choices | None = None
    guided_grammar: GrammarText | None = None
    json_schema: Schema = None
    regex: Pattern | None = None
    ebnf: GrammarText | None = None
    grammar: Grammar | None = None
    # These fields are for the client's own records. The server ignores them.
    user: Annotated[str | None, Meta(description="An id of the end user; not used.")] = None
    metadata: (
        Annotated[
            dict[str, str], Meta(max_length=16, description="Labels of the request; not used.")
        ]
        | None
    ) = None
    safety_identifier: Annotated[
        str | None, Meta(description="An id of the end user; not used.")
    ] = None
    prompt_cache_key: Annotated[
        str | None,
        Meta(
            description="A hint for routers, which send requests with the same key to one server."
        ),
    ] = None


class CompletionFields(GenerationFields, kw_only=True):
    """The fields of chat and text completions, which answer with choices."""

    prompt_logprobs: (
        Annotated[
            int,
            Meta(
                ge=-1,
                description="Returns the log probability of every prompt token, with this number "
                "of "
                "alternatives; at most the server's max_logprobs; -1: the whole vocabulary.",
            ),
        ]
        | None
    ) = None
    stream_options: Annotated[StreamOptions | None, Meta(description="Only with stream.")] = None
