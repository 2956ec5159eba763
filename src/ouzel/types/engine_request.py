"""Defines a request for the engine: token ids, sampling parameters, grammar, images and sound."""

from typing import ClassVar

import msgspec

from ouzel.pooling import Pooling
from ouzel.sampling import SamplingParams

# The engine client adds this to the priorities of requests that run in the background. Priorities
# of clients are in [-2**31, 2**31), so the two kinds never mix.
BACKGROUND_PRIORITY = 2**32


class Grammar(msgspec.Struct, frozen=True, array_like=True):
    text: str  # written in the Lark dialect of `ouzel.grammar`
    param: str  # the request field that asked for the grammar


class ReasoningBudget(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Limits the reasoning of each choice: after so many tokens the engine writes its end mark."""

    max_tokens: int
    end_token_ids: tuple[int, ...]  # the tokens of the end mark; at least one
    starts: tuple[bytes, ...]  # marks that begin the reasoning
    ends: tuple[bytes, ...]  # marks that end the reasoning
    # bytes of every token that can be part of a mark, or is whitespace before one
    pieces: dict[int, bytes]
    is_open: bool  # the prompt has begun the reasoning
    # reasoning may begin at every start mark; otherwise only at the begin of the output
    may_repeat: bool = False
    call_token_id: int | None = None  # the token that opens a call and so ends the reasoning
    # an engine that cannot limit the reasoning must refuse the request; otherwise it ignores this
    is_required: bool = True


class ImageInput(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, weakref=True, tag="image"
):
    """An image for the vision encoder; its features stand for tokens of the prompt."""

    digest: bytes  # digest of the image and its preparation: equal digests have equal features
    # (first token, number of tokens) of each run, ascending; features follow this order
    runs: tuple[tuple[int, int], ...]
    shape: tuple[int, int, int]  # tiles, height, width
    pixels: bytes  # uint8 [tiles, height, width, 3]
    rescale: float  # a pixel becomes (value * rescale - mean) / std
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    size: tuple[int, int]  # height and width of the image before its division into tiles
    # time, height and width of the grid of its tokens' positions
    position_grid: tuple[int, int, int] | None = None
    # for frames of one video: positions of time since the begin of the image before
    time_shift: int | None = None


class SoundInput(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, weakref=True, tag="sound"
):
    """A sound for the audio encoder of a model that hears; its features stand for tokens of the
    prompt.

    The engine treats it as an image. Its tokens have the positions of text.
    """

    digest: bytes  # digest of the sound and its preparation: equal digests have equal features
    # (first token, number of tokens) of each run, ascending; features follow this order
    runs: tuple[tuple[int, int], ...]
    shape: tuple[int, int]  # mel bins, frames
    features: bytes  # float32 [mel bins, frames]: the log-mel spectrogram
    num_frames: int  # frames of the sound; silence follows them
    position_grid: ClassVar[None] = None
    time_shift: ClassVar[None] = None


MediaInput = ImageInput | SoundInput


class AudioInput(msgspec.Struct, frozen=True, kw_only=True, array_like=True, weakref=True):
    """A window of sound for the audio encoder of a model whose decoder attends to it."""

    digest: bytes  # digest of the features: equal digests have equal features
    shape: tuple[int, int]  # mel bins, frames
    features: bytes  # float32 [mel bins, frames]: the log-mel spectrogram


class TranscriptRules(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The rules for the next token of a transcript, as in openai-whisper's `decoding.py`.

    Timestamps come in pairs, except before the end token, and never decrease. A timestamp is chosen
    if all timestamps together are more likely than the most likely text token.
    """

    end_token_id: int
    suppressed: tuple[int, ...] = ()  # never chosen
    suppressed_first: tuple[int, ...] = ()  # not chosen as the first token
    first_timestamp: int | None = None  # the id of <|0.00|>; None: no rule about timestamps
    # the largest timestamp that may come first, counted from <|0.00|>; None: no limit
    max_first_timestamp: int | None = None


class SpeculationParams(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The limits of proposed tokens for a request: they change its speed, not its output."""

    max_proposed_tokens: int | None = None  # maximum in a step; 0: none; None: as many as pay
    # a draft model proposes tokens with at least this probability
    confidence_threshold: float | None = None
    # maximum of tokens to compare in a look-up; None: the default
    max_ngram_size: int | None = None
    predicted_token_ids: list[int] = []  # the output that the client expects


class EngineRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An accepted request, with token ids instead of text."""

    request_id: str  # unique among unfinished requests
    prompt_token_ids: list[int]  # one or more
    params: SamplingParams
    eos_token_ids: tuple[int, ...] = ()
    n: int = 1  # choices 0..n-1
    priority: int = 0  # smaller goes first
    grammar: Grammar | None = None
    # requests share cached blocks only if their salts are equal; each API key has its own
    cache_salt: str = ""
    reasoning_budget: ReasoningBudget | None = None
    images: tuple[MediaInput, ...] = ()  # images and sounds, ordered by their tokens
    speculation: SpeculationParams = SpeculationParams()
    pooling: Pooling | None = None
    adapter: str = ""  # name of a loaded adapter; empty: the base model
    audio: AudioInput | None = None  # the sound that the decoder of a speech model attends to
    transcript_rules: TranscriptRules | None = None
    # Above 0, and with max_tokens 0: StepOutput.vector tells which of the first so many frames of
    # the encoder each prompt token attends to, float32 [prompt tokens, frames]: the attention of
    # the alignment heads, normalised over the tokens, median-filtered over the frames, and
    # averaged. No token comes from the prefix cache.
    num_aligned_frames: int = 0

    @property
    def is_background(self) -> bool:
        """Tells whether the request takes only time that other requests leave."""
        return self.priority >= BACKGROUND_PRIORITY - 2**31
