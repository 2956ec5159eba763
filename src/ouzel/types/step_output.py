"""The tokens that one engine step gives to one choice of a request."""

from enum import StrEnum

import msgspec


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
