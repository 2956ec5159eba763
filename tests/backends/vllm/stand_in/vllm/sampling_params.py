"""Defines SamplingParams with the checks that Ouzel's requests may fail."""

from enum import Enum
from typing import Any, ClassVar

from .exceptions import VLLMValidationError
from .names import CONSTANTS, Strict


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


class StructuredOutputsParams(Strict):
    pass


class SamplingParams(Strict):
    defaults: ClassVar[dict[str, Any]] = {
        "n": 1,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "max_tokens": 16,
        "min_tokens": 0,
        "ignore_eos": False,
        "detokenize": True,
        "output_kind": RequestOutputKind.CUMULATIVE,
    }

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        if self.max_tokens < 1:
            raise VLLMValidationError(
                "max_tokens must be at least 1", parameter="max_tokens", value=self.max_tokens
            )
        if not 0.0 <= self.temperature <= 2.0:
            raise VLLMValidationError(
                "temperature must be in [0, 2]", parameter="temperature", value=self.temperature
            )
        if not 0.0 < self.top_p <= 1.0:
            raise VLLMValidationError(
                "top_p must be in (0, 1]", parameter="top_p", value=self.top_p
            )
        if self.min_tokens > self.max_tokens:
            raise VLLMValidationError("min_tokens must be less than or equal to max_tokens")
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise ValueError("seed")
        ids = self.logprob_token_ids
        if ids is not None and (
            len(ids) > CONSTANTS["MAX_LOGPROB_TOKEN_IDS"] or self.logprobs != len(ids)
        ):
            raise VLLMValidationError(
                "logprobs must equal len(logprob_token_ids)", parameter="logprob_token_ids"
            )
