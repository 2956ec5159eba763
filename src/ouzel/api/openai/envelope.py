"""Writes the envelope that all objects of an answer share, and the usage."""

import secrets
import time

import msgspec

from ouzel.generation import ServedModel, Usage
from ouzel.wire.fields import CompletionFields


class Envelope(msgspec.Struct, frozen=True):
    """The fields that every object of an answer repeats."""

    id: str
    created: int
    model: str
    system_fingerprint: str


def new_envelope(prefix: str, model: ServedModel) -> Envelope:
    return Envelope(
        f"{prefix}-{secrets.token_hex(16)}",
        int(time.time()),
        model.names[0],
        model.system_fingerprint,
    )


class PromptTokensDetails(msgspec.Struct):
    cached_tokens: int
    # set for a prompt with images
    image_tokens: int | msgspec.UnsetType = msgspec.UNSET
    # set for a prompt with sounds
    audio_tokens: int | msgspec.UnsetType = msgspec.UNSET


class CompletionTokensDetails(msgspec.Struct):
    reasoning_tokens: int
    # all accepted proposals: the client's prediction is one of several sources
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int


class UsageObject(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


def usage_object(usage: Usage) -> UsageObject:
    return UsageObject(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        prompt_tokens_details=PromptTokensDetails(
            usage.cached_tokens,
            usage.image_tokens or msgspec.UNSET,
            usage.audio_tokens or msgspec.UNSET,
        ),
        completion_tokens_details=CompletionTokensDetails(
            reasoning_tokens=usage.reasoning_tokens,
            accepted_prediction_tokens=usage.accepted_prediction_tokens,
            rejected_prediction_tokens=usage.rejected_prediction_tokens,
        ),
    )


class StreamedUsage(msgspec.Struct, frozen=True):
    """Decides which chunks of a stream carry the usage."""

    at_end: bool
    running: bool

    @classmethod
    def from_request(cls, body: CompletionFields) -> "StreamedUsage":
        options = body.stream_options
        running = options is not None and bool(options.continuous_usage_stats)
        return cls(running or (options is not None and bool(options.include_usage)), running)

    def for_chunk(self, usage: Usage) -> UsageObject | msgspec.UnsetType | None:
        """Returns the usage of a chunk: null if only the last chunk has the usage, as OpenAI does.

        If the request does not ask for the usage, the field is absent.
        """
        if self.running:
            return usage_object(usage)
        return None if self.at_end else msgspec.UNSET
