"""A request as the engine takes it: token ids, sampling parameters, grammar and images."""

import msgspec

from ouzel.pooling import Pooling
from ouzel.sampling import SamplingParams


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
