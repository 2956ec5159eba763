"""These frozen records cross a boundary. Nothing here is mutable or has logic."""

from enum import StrEnum
from typing import Literal

import msgspec

from ouzel.pooling import Pooling, Task
from ouzel.sampling import SamplingParams

# models write a custom tool's text as the one argument of a function, under this name
CUSTOM_ARGUMENT = "input"


class TextGrammar(msgspec.Struct, frozen=True):
    """A client's own grammar says what a text may be."""

    syntax: Literal["lark", "regex"]
    definition: str


class FunctionTool(msgspec.Struct, frozen=True):
    """The model may call this function."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None  # JSON schema of the arguments; None: it takes none
    strict: bool = False  # the arguments must obey the schema
    # the client sees a text instead of arguments: the one that they consist of
    is_custom: bool = False
    text_grammar: TextGrammar | None = None  # of that text


class ParameterMarks(msgspec.Struct, frozen=True, kw_only=True):
    """What a model writes around the parameters of a call, where these stand one after another as bare text."""

    style: str  # the name of these marks in a format
    begin: str
    name_end: str
    value_begin: str = ""  # there may be space before it
    end: str
    has_newlines: bool = False  # one at either end of a value belongs to the marks


class FinishReason(StrEnum):
    STOP = "stop"  # the model's end token, a stop token or a stop string
    LENGTH = "length"  # max_tokens or max_model_len
    ABORT = "abort"  # asked for by the client, or the client went away
    ERROR = "error"  # this request failed through no fault of its own; StepOutput.error says why
    REFUSED = "refused"  # what this request asks for cannot be; StepOutput.error says why
    # it may be taken later; StepOutput.error says what there is too much of
    OVERLOADED = "overloaded"


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    token_id: int
    logprob: float  # natural logarithm


class PositionLogprobs(msgspec.Struct, frozen=True, array_like=True):
    """They are those of the model's own distribution at one position: before bias, penalties and temperature."""

    sampled: TokenLogprob  # in a prompt: the token that stands there
    top: tuple[
        TokenLogprob, ...
    ]  # num_logprobs, or all that are possible, most likely first; then asked-for others
    rank: int | None = None  # of a prompt's token: 1 for the most likely


class Grammar(msgspec.Struct, frozen=True, array_like=True):
    text: str  # the grammar of the output, in the Lark of `ouzel.grammar`
    param: str  # the request field that asked for it


class ReasoningBudget(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The reasoning of each choice has so many tokens at most: after them the engine writes its end."""

    max_tokens: int
    end_token_ids: tuple[int, ...]  # at least one: the mark that the engine writes
    starts: tuple[bytes, ...]  # marks that begin the reasoning
    ends: tuple[bytes, ...]  # marks that end it
    pieces: dict[
        int, bytes
    ]  # of every token that can be part of a mark, or is whitespace before one
    is_open: bool  # the prompt has begun the reasoning
    # it may begin wherever a start stands, and again; else with the output only
    may_repeat: bool = False
    call_token_id: int | None = None  # a token that opens a call, and so ends the reasoning
    # an engine that cannot limit the reasoning refuses the request, or else ignores this
    is_required: bool = True


class ImageInput(msgspec.Struct, frozen=True, kw_only=True, array_like=True, weakref=True):
    """The model's vision encoder takes a picture as this; its features stand for tokens of the prompt."""

    digest: bytes  # of the picture and of how it was prepared: equal digests have equal features
    runs: tuple[
        tuple[int, int], ...
    ]  # of the tokens, as (first, how many): ascending; features go to them in order
    shape: tuple[int, int, int]  # tiles, height, width
    pixels: bytes  # uint8 [tiles, height, width, 3]
    rescale: float  # a pixel becomes (value * rescale - mean) / std
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    size: tuple[int, int]  # height and width of the picture, before it was cut into tiles
    # time, height, width of its tokens, whose positions have as many
    position_grid: tuple[int, int, int] | None = None
    # it goes on where the image before began, so much later: frames of one video
    time_shift: int | None = None


class SpeculationParams(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """It says how tokens are proposed for a request, which changes no output, only how soon it comes."""

    max_proposed_tokens: int | None = None  # in a step; 0: none; None: as many as pay
    # a draft model proposes what it finds at least so probable
    confidence_threshold: float | None = None
    # tokens that are compared to find where the text stood before; None: the default
    max_ngram_size: int | None = None
    predicted_token_ids: list[int] = []  # of the output, as the client expects it


class EngineRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The engine reads an accepted request as this: token ids only."""

    request_id: str  # unique among unfinished requests
    prompt_token_ids: list[int]  # at least one
    params: SamplingParams
    eos_token_ids: tuple[int, ...] = ()
    n: int = 1  # choices 0..n-1
    priority: int = 0  # smaller goes first
    grammar: Grammar | None = None
    # requests share cached blocks only under the same salt; of API keys each has its own
    cache_salt: str = ""
    reasoning_budget: ReasoningBudget | None = None
    images: tuple[ImageInput, ...] = ()  # in the order of their tokens
    speculation: SpeculationParams = SpeculationParams()
    pooling: Pooling | None = None
    adapter: str = ""  # the name of a loaded one, which adds to the model's matrices; empty: the model as it is


class RequestTiming(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """It says where the time before one choice's first token went, in seconds."""

    queue_s: float  # added to first scheduled
    prefill_s: (
        float  # first scheduled to first token, or to the prompt's end when no token is asked for
    )


class StepOutput(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A step gave this to one choice. Each index gets exactly one with a finish_reason, and nothing after it."""

    request_id: str
    index: int
    token_ids: list[int]  # new ones; the end or stop token is among them
    logprobs: list[PositionLogprobs]  # one per token id when asked for, else empty
    num_cached_tokens: int  # prompt tokens taken from the prefix cache
    prompt_logprobs: list[
        PositionLogprobs
    ] = []  # the next ones, all before the first token; with index 0
    finish_reason: FinishReason | None = None
    stop_token_id: int | None = None  # the end or stop token that ended it: the last of token_ids
    error: str | None = None
    error_param: str | None = None  # the request field at fault: the client must change the request
    timing: RequestTiming | None = None  # with the first token, or the end of a prompt without one
    num_proposed_tokens: int = 0  # of the whole choice so far: that were computed on a guess,
    num_accepted_tokens: int = 0  # and of them those that came
    score: float | None = None  # of a beam search's winner; index 0 has the highest
    # float32, little-endian: what pooling comes to, with the finish reason
    vector: bytes | None = None


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The engine decided this, as opposed to what the configuration asked."""

    backend: str
    model_type: str
    device: str
    weights: str  # as --weights has it (int8; int4,head=int4), ir, or the format of a quantised checkpoint that is kept
    precision: str  # of inference: bf16, f16 or f32
    kv_cache_dtype: str
    vocab_size: int
    max_model_len: int  # prompt plus completion, in tokens
    block_size: int  # tokens per KV block
    num_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    load_s: float
    num_state_slots: int = 0  # of recurrent layers; 0: the model has none
    has_grammars: bool = False  # it can hold an output to a grammar
    has_beam_search: bool = True
    has_prompt_lookup: bool = False  # it guesses tokens from where the text stood before
    has_drafts: bool = False  # it guesses tokens with a smaller model, or a layer of its own
    has_vision: bool = False  # it takes images
    # each token of an image attends to all of them: an image is never cut
    sees_images_whole: bool = False
    # a token's row has the same bits whatever else a step holds (`engine.row_kinds`)
    is_deterministic: bool = False
    is_causal: bool = False  # of a model without a KV cache: it is a decoder, whose last token has read all others
    task: Task = "generate"
    vector_size: int = 0  # values of a vector; 0: it makes none
    max_texts: int = 1  # of one pooling request
    max_loras: int = 0  # adapters that can be loaded at a time; 0: it takes none
    max_lora_rank: int = 0
    adapters: tuple[str, ...] = ()  # that were loaded when it was ready
    # a request that it takes gets an output without tokens first; others it refuses
    confirms_requests: bool = False
    # what is cached under another means something else; it can be a file's name
    cache_identity: str = ""


class EngineStats(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """They are a snapshot after a step; counters run since the engine started."""

    num_running: int  # sequences
    num_waiting: int
    num_used_blocks: int  # referenced by a sequence; cached but unreferenced ones count as free
    num_blocks: int
    num_prefix_query_tokens: int  # counter
    num_prefix_hit_tokens: int  # counter
    num_preemptions: int  # counter
    num_used_state_slots: int = 0  # kept states included
    num_images_encoded: int = 0  # counter
    # counter: images of requests whose features, or whose place in the cache, were there
    num_image_hits: int = 0
    num_drafts: int = 0  # counter: of steps, the sequences that had tokens proposed
    num_draft_tokens: int = 0  # counter: tokens proposed
    num_accepted_tokens: int = 0  # counter: of these, those that came
    encoding_s: float = 0.0  # counter: time that the vision encoder took
    num_store_bytes: int = 0  # of records in the prefix cache directory
    num_store_written: int = 0  # counters of records: blocks and states
    num_store_loaded: int = 0
    num_store_damaged: int = 0  # dropped when they were to be loaded
    # left out, since their block went before, or too many waited to be written
    num_store_skipped: int = 0
    running_adapters: tuple[str, ...] = ()  # of the running sequences,
    waiting_adapters: tuple[str, ...] = ()  # and of the waiting ones
