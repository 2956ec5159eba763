"""Reads the request fields for speculation, which changes only the speed of an answer.

`num_assistant_tokens`, `assistant_confidence_threshold` and `max_ngram_size` are OpenVINO GenAI's.
They are refused if the server has no source of proposals that can honour them. `prediction` is
OpenAI's; it is a hint.

A seed promises a reproducible answer. Proposals add rows to a step, and more rows may round
differently. So a request with a seed gets no proposals, unless one of GenAI's fields asks for them
or the engine is deterministic.
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
            description="Most tokens proposed in a step; 0: none. A request with a seed gets no "
            "proposals unless this field or one of the other two fields for proposals is given, or "
            "the server is --deterministic or its log says deterministic.",
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
            description="A draft model or the layer of --mtp, one of which is needed, proposes "
            "tokens while each has at least this probability; not beside num_assistant_tokens.",
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
            description="Most tokens that are compared to find an earlier occurrence of the text.",
        ),
    ]
    | None
)


class PredictedText(msgspec.Struct, frozen=True):
    type: Annotated[Literal["text"], Meta(description="The type of the part.")]
    text: Annotated[str, Meta(description="Text that continues the part before.")]


class Prediction(msgspec.Struct, frozen=True):
    type: Annotated[Literal["content"], Meta(description="The predicted part of the answer.")]
    content: Annotated[
        str | list[PredictedText],
        Meta(description="The expected answer, or its beginning."),
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
        description="Text that the answer is expected to have; such an answer comes sooner. "
        "A hint without effect beside a seed."
    ),
]


class SpeculationFields(Protocol):
    seed: int | None
    num_assistant_tokens: int | None
    assistant_confidence_threshold: float | None
    max_ngram_size: int | None


def read_prediction(prediction: Prediction, body: SpeculationFields, info: EngineInfo) -> str:
    """Returns the predicted text, or an empty text if the server only takes it as a hint."""
    if not info.has_prompt_lookup:
        logger.info("taken as hints: prediction (there is no --prompt-lookup)")
        return ""
    if not _may_propose(body, info):
        logger.info("taken as hints: prediction (the request has a seed)")
        return ""
    return prediction.text


def read_speculation(body: SpeculationFields, model: ServedModel) -> SpeculationOptions:
    """Reads the speculation options of a request.

    Raises InvalidRequest if fields contradict each other or need a source of proposals that is off.
    """
    num_tokens, threshold = body.num_assistant_tokens, body.assistant_confidence_threshold
    if not _asks_for_proposals(body):
        may_propose = body.seed is None or _may_propose(body, model.engine.info)
        return SpeculationOptions(num_assistant_tokens=None if may_propose else 0)
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


def _asks_for_proposals(body: SpeculationFields) -> bool:
    fields = (body.num_assistant_tokens, body.assistant_confidence_threshold, body.max_ngram_size)
    return any(value is not None for value in fields)


def _may_propose(body: SpeculationFields, info: EngineInfo) -> bool:
    """Tells whether proposals leave the answer as reproducible as the request demands."""
    return body.seed is None or info.is_deterministic or _asks_for_proposals(body)
