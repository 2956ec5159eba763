"""What goes into a generation, and what comes out of it."""

from collections.abc import Sequence

import msgspec

from ouzel.parsers.bare_calls import BareCalls
from ouzel.parsers.base import Delta
from ouzel.prompts.render import Prompt
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import Grammar, ReasoningBudget, SpeculationParams
from ouzel.types.step_output import FinishReason, PositionLogprobs
from ouzel.types.tools import FunctionTool


class GenerationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with every default filled in and every combination checked."""

    request_id: str
    prompt: Prompt
    params: SamplingParams
    n: int
    best_of: int  # samples to choose the n from; n itself when there is no choice
    stop_strings: tuple[str, ...]
    include_stop_str_in_output: bool
    skip_special_tokens: bool
    continues_prompt: bool  # the text goes on where the prompt ends (completions), rather than starting anew (chat)
    parses_output: bool  # into reasoning, calls and content; else all is content
    # that may come in a row without giving text; None: any number
    max_hidden_tokens: int | None = None
    tools: tuple[FunctionTool, ...] = ()  # that may be called
    # that the whole answer may be, without the marks of the family
    bare_calls: BareCalls | None = None
    grammar: Grammar | None = None
    dropped_formats: tuple[
        str, ...
    ] = ()  # a reason for each demand on the form of the output that does not count
    may_drop_grammar: bool = False  # if the engine refuses it, before the first token
    reasoning_budget: ReasoningBudget | None = None
    speculation: SpeculationParams = SpeculationParams()
    priority: int
    cache_salt: str
    adapter: str | None = None  # empty: the model as it is; None: the adapter of the served model
    arrival_s: float  # time.perf_counter() when the request came in
    warnings: tuple[
        str, ...
    ] = ()  # for the client: parts of the request that the answer does not take into account


class PromptScored(msgspec.Struct, frozen=True):
    """The first event of a request with `num_prompt_logprobs`, once for all of its choices."""

    index: int  # the first of them
    logprobs: list[PositionLogprobs]  # of every prompt token but the first


class Output(msgspec.Struct, frozen=True):
    """New tokens of one choice; without deltas and logprobs where their text is held back."""

    index: int
    deltas: list[Delta]
    token_ids: list[int]
    logprobs: list[
        PositionLogprobs
    ]  # when asked for, of the tokens whose text has begun to come out


class Finished(msgspec.Struct, frozen=True):
    """The last event of one choice."""

    index: int
    reason: FinishReason
    stop_reason: int | str | None  # the request's stop token or stop string that ended it
    hidden_logprobs: Sequence[
        PositionLogprobs
    ] = ()  # when asked for, of a hidden stop string's tokens


Event = PromptScored | Output | Finished


class Durations(msgspec.Struct, frozen=True):
    """Where a generation's time has gone up to now, in seconds, without that in the engine's queue."""

    prompt_s: float  # until its first token
    output_s: float  # from there to its newest token


class Usage(msgspec.Struct, frozen=True):
    """What a request used up to now, over all its choices."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    # tokens of the output that were proposed, whoever guessed them,
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0  # and tokens that were proposed and did not come
    image_tokens: int = 0  # of the prompt's
    durations: Durations | None = None  # of one prompt; None before its first token
