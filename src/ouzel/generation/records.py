"""Defines the input and the events of a generation."""

from collections.abc import Sequence

import msgspec

from ouzel.parsers.bare_calls import BareCalls
from ouzel.parsers.base import Delta
from ouzel.prompts.prompt import Prompt
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
    best_of: int  # samples to choose the n from; n if there is no choice
    stop_strings: tuple[str, ...]
    include_stop_str_in_output: bool
    skip_special_tokens: bool
    # the text continues the prompt (completions), and is no new message (chat)
    continues_prompt: bool
    # the output is parsed into reasoning, calls and content; otherwise all is content
    parses_output: bool
    # maximum of successive tokens without text; None: no limit
    max_hidden_tokens: int | None = None
    tools: tuple[FunctionTool, ...] = ()  # tools that may be called
    # calls that the whole answer may be, without the marks of the family
    bare_calls: BareCalls | None = None
    grammar: Grammar | None = None
    # a reason for each format that is not honoured
    dropped_formats: tuple[str, ...] = ()
    # the grammar may be dropped if the engine refuses it before the first token
    may_drop_grammar: bool = False
    reasoning_budget: ReasoningBudget | None = None
    speculation: SpeculationParams = SpeculationParams()
    priority: int
    cache_salt: str
    adapter: str | None = None  # empty: the base model; None: the adapter of the served model
    arrival_s: float  # time.perf_counter() at the arrival
    # for the client: parts of the request that the answer ignores
    warnings: tuple[str, ...] = ()


class PromptScored(msgspec.Struct, frozen=True):
    """The first event of a request with `num_prompt_logprobs`, once for all its choices."""

    index: int  # index of the first choice
    logprobs: list[PositionLogprobs]  # logprobs of every prompt token but the first


class Output(msgspec.Struct, frozen=True):
    """New tokens of one choice; without deltas and logprobs if their text is held back."""

    index: int
    deltas: list[Delta]
    token_ids: list[int]
    # if requested, of the tokens whose text has begun to come out
    logprobs: list[PositionLogprobs]


class Finished(msgspec.Struct, frozen=True):
    """The last event of one choice."""

    index: int
    reason: FinishReason
    stop_reason: int | str | None  # the stop token or stop string of the request that ended it
    # if requested, of the tokens of a hidden stop string
    hidden_logprobs: Sequence[PositionLogprobs] = ()


Event = PromptScored | Output | Finished


class Durations(msgspec.Struct, frozen=True):
    """The seconds of a generation so far, without the time in the engine's queue."""

    prompt_s: float  # time to the first token
    output_s: float  # time from the first to the newest token


class Usage(msgspec.Struct, frozen=True):
    """The numbers of tokens of a request so far, over all its choices."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    # output tokens that any source had proposed
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0  # proposed tokens that are not in the output
    image_tokens: int = 0  # tokens of the prompt's images
    audio_tokens: int = 0  # tokens of the prompt's sounds
    durations: Durations | None = None  # times of one prompt; None before its first token
