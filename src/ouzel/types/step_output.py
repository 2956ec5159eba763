"""Defines the result of one engine step for one choice."""

from enum import StrEnum

import msgspec


class FinishReason(StrEnum):
    STOP = "stop"  # the model's end token, a stop token or a stop string
    LENGTH = "length"  # max_tokens or max_model_len
    ABORT = "abort"  # the client asked for it or disconnected
    ERROR = "error"  # failed through no fault of the request; StepOutput.error has the reason
    REFUSED = "refused"  # the request cannot be honoured; StepOutput.error has the reason
    # the request may be accepted later; StepOutput.error names the overload
    OVERLOADED = "overloaded"


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    token_id: int
    logprob: float  # natural logarithm


class PositionLogprobs(msgspec.Struct, frozen=True, array_like=True):
    """Logprobs of the model's own distribution, before bias, penalties and temperature."""

    sampled: TokenLogprob  # the sampled token; in a prompt, the prompt's own token
    # the num_logprobs most likely tokens (or all), most likely first; then requested tokens
    top: tuple[TokenLogprob, ...]
    rank: int | None = None  # rank of a prompt's token: 1 is the most likely


class RequestTiming(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The times before one choice's first token, in seconds."""

    queue_s: float  # time from the arrival to the first scheduling
    # from the first scheduling to the first token, or to the prompt's end if there is no token
    prefill_s: float


class StepOutput(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One choice's result of a step.

    Each index gets exactly one output with a finish_reason, and none after it.
    """

    request_id: str
    index: int
    token_ids: list[int]  # new tokens, with the end or stop token
    logprobs: list[PositionLogprobs]  # one per token id if requested, else empty
    num_cached_tokens: int  # prompt tokens taken from the prefix cache
    # the next ones, all before the first token; only for index 0
    prompt_logprobs: list[PositionLogprobs] = []
    finish_reason: FinishReason | None = None
    # the end or stop token that ended the choice: the last of token_ids
    stop_token_id: int | None = None
    error: str | None = None
    error_param: str | None = None  # the request field at fault: the client must change the request
    # comes with the first token, or with the end of a prompt without tokens
    timing: RequestTiming | None = None
    num_proposed_tokens: int = 0  # proposed tokens of the whole choice so far
    num_accepted_tokens: int = 0  # accepted tokens of the whole choice so far
    score: float | None = None  # score of a beam search's winner; index 0 has the highest
    # float32, little-endian: the result of a pooling request, with the finish reason; one row after
    # the other if each token has a vector
    vector: bytes | None = None
