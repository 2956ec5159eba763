"""These request fields say how tokens are guessed: how soon an answer comes depends on them.

`num_assistant_tokens`, `assistant_confidence_threshold` and `max_ngram_size` are OpenVINO GenAI's. They are refused
where nothing guesses in that way, as the wish cannot be honoured. `prediction` is OpenAI's, and a hint there.

A request with a seed asks for one answer. A guess adds rows to a step, by which these may round otherwise, so for such
a request nothing is guessed, unless one of GenAI's fields asks for guesses or the engine is deterministic.
"""

import logging
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import MAX_ASSISTANT_TOKENS, ServedModel, SpeculationOptions
from ouzel.types.engine_info import EngineInfo

logger = logging.getLogger(__name__)

NumAssistantTokens = (
    Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_ASSISTANT_TOKENS,
            description="Most tokens guessed in a step; 0: none. Beside a seed nothing is guessed unless this field or "
            "one of the other two for guesses is given, or the server is --deterministic.",
        ),
    ]
    | None
)
ConfidenceThreshold = (
    Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            description="A draft model or the layer of --mtp, one of which it needs, guesses on while it finds each "
            "token at least so probable; not beside num_assistant_tokens.",
        ),
    ]
    | None
)
MaxNgramSize = (
    Annotated[
        int,
        Meta(
            ge=1,
            le=2**31 - 1,
            description="Most tokens that are compared to find where the text stood before.",
        ),
    ]
    | None
)


class PredictedText(msgspec.Struct, frozen=True):
    type: Annotated[Literal["text"], Meta(description="Of the part.")]
    text: Annotated[str, Meta(description="Goes on from the part before.")]


class Prediction(msgspec.Struct, frozen=True):
    type: Annotated[Literal["content"], Meta(description="What is predicted.")]
    content: Annotated[
        str | list[PredictedText],
        Meta(description="The answer as it is expected, or its beginning."),
    ]

    @property
    def text(self) -> str:
        return (
            self.content
            if isinstance(self.content, str)
            else "".join(part.text for part in self.content)
        )


PredictedOutput = Annotated[
    Prediction | None,
    Meta(
        description="Text that the answer is expected to have: it comes sooner. A hint without effect beside a seed."
    ),
]


class SpeculationFields(Protocol):
    seed: int | None
    num_assistant_tokens: int | None
    assistant_confidence_threshold: float | None
    max_ngram_size: int | None


def predicted_text(prediction: Prediction, body: SpeculationFields, info: EngineInfo) -> str:
    """Returns the empty text where it is a hint, as no text is looked up."""
    if not info.has_prompt_lookup:
        logger.info("taken as hints: prediction (there is no --prompt-lookup)")
        return ""
    if not _may_guess(body, info):
        logger.info("taken as hints: prediction (the request has a seed)")
        return ""
    return prediction.text


def speculation_of(body: SpeculationFields, model: ServedModel) -> SpeculationOptions:
    """Raises InvalidRequest for fields that contradict each other, or mean a way of guessing that is switched off."""
    num_tokens, threshold = body.num_assistant_tokens, body.assistant_confidence_threshold
    if not _asks_for_guesses(body):
        may_guess = body.seed is None or _may_guess(body, model.engine.info)
        return SpeculationOptions(num_assistant_tokens=None if may_guess else 0)
    info = model.engine.info
    if threshold is not None and num_tokens is not None:
        field = "assistant_confidence_threshold"
        raise InvalidRequest(
            f"must not be given beside num_assistant_tokens, given {threshold:g}", field=field
        )
    if threshold is not None and not info.has_drafts:
        field = "assistant_confidence_threshold"
        needed = "a draft model (--draft-model or --mtp at the start)"
        raise InvalidRequest(f"needs {needed}, given {threshold:g}", field=field)
    if num_tokens and not (info.has_prompt_lookup or info.has_drafts):
        needed = "--prompt-lookup, --draft-model or --mtp at the start"
        raise InvalidRequest(f"needs {needed}, given {num_tokens}", field="num_assistant_tokens")
    if body.max_ngram_size is not None and not info.has_prompt_lookup:
        needed = "--prompt-lookup at the start"
        raise InvalidRequest(f"needs {needed}, given {body.max_ngram_size}", field="max_ngram_size")
    return SpeculationOptions(
        num_assistant_tokens=num_tokens,
        assistant_confidence_threshold=threshold,
        max_ngram_size=body.max_ngram_size,
    )


def _asks_for_guesses(body: SpeculationFields) -> bool:
    fields = (body.num_assistant_tokens, body.assistant_confidence_threshold, body.max_ngram_size)
    return any(value is not None for value in fields)


def _may_guess(body: SpeculationFields, info: EngineInfo) -> bool:
    """Tells whether guesses leave the request the answer that it asks for."""
    return body.seed is None or info.is_deterministic or _asks_for_guesses(body)
