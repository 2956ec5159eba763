"""Describes the error responses of each operation for the OpenAPI document, by status."""

from collections.abc import Mapping
from http import HTTPStatus

from ouzel.api.anthropic.errors import OVERLOADED, AnthropicError
from ouzel.api.cohere.errors import CohereError
from ouzel.api.document.schema_refs import JSON, JsonObject, schema_ref
from ouzel.api.endpoint.model_pulls import DiskFull, HubFailed, ModelInUse
from ouzel.api.endpoint.operation import Operation, StructType, Words
from ouzel.api.http.errors import (
    BodyTimeout,
    ForeignHost,
    ForeignOrigin,
    HeadTimeout,
    HeadTooLarge,
    PayloadTooLarge,
    TooManyConnections,
    Unauthenticated,
    UnsupportedEncoding,
)
from ouzel.api.http.faults import ErrorBody
from ouzel.api.lmi.errors import SAGEMAKER_STATUSES, FrontEndError, HandlerError, SageMakerError
from ouzel.api.ollama.errors import OllamaError
from ouzel.api.tei.errors import STATUSES as TEI_STATUSES
from ouzel.api.tei.errors import TeiError
from ouzel.errors import (
    ContextLengthExceeded,
    EngineFailed,
    EngineUnavailable,
    InvalidRequest,
    ModelNotFound,
    OuzelError,
    Overloaded,
)
from ouzel.store.errors import (
    ConversationLocked,
    ConversationNotFound,
    HistoryLost,
    ItemNotFound,
    PreviousResponseNotFound,
    ResponseNotFound,
    StoreUnavailable,
)

# The first lines of their docstrings describe the statuses of answers.
_DESCRIBED_ERRORS: tuple[type[OuzelError], ...] = (
    InvalidRequest,
    ContextLengthExceeded,
    Unauthenticated,
    ForeignOrigin,
    ForeignHost,
    ModelNotFound,
    ResponseNotFound,
    PreviousResponseNotFound,
    ConversationNotFound,
    ItemNotFound,
    HistoryLost,
    ConversationLocked,
    PayloadTooLarge,
    UnsupportedEncoding,
    BodyTimeout,
    HeadTimeout,
    HeadTooLarge,
    Overloaded,
    TooManyConnections,
    EngineUnavailable,
    StoreUnavailable,
    EngineFailed,
    ModelInUse,
    HubFailed,
    DiskFull,
)
# error bodies by dialect; other dialects have OpenAI's form, and LMI has two forms
_ERRORS: Mapping[Words, StructType] = {
    "anthropic": AnthropicError,
    "ollama": OllamaError,
    "cohere": CohereError,
    "tei": TeiError,
    "sagemaker": SageMakerError,
}
# statuses of dialects by the status in OpenAI's dialect
_STATUSES: Mapping[Words, Mapping[str, str]] = {
    "anthropic": {"429": str(OVERLOADED)},
    "tei": TEI_STATUSES,
    "sagemaker": SAGEMAKER_STATUSES,
}
ALL_ERRORS: tuple[StructType, ...] = (ErrorBody, HandlerError, FrontEndError, *_ERRORS.values())


def list_errors(words: Words) -> tuple[StructType, ...]:
    """Returns the forms of errors in a dialect."""
    return (HandlerError, FrontEndError) if words == "lmi" else (_ERRORS.get(words, ErrorBody),)


def make_error_refs(operation: Operation) -> JsonObject:
    error = _ERRORS.get(operation.words, ErrorBody)
    own_statuses = _STATUSES.get(operation.words, {})
    return {
        own_statuses.get(status, status): {
            "$ref": f"#/components/responses/{_response_name(error, status)}"
        }
        for status in _error_responses()
    }


def name_error_responses() -> dict[str, JsonObject]:
    errors_of_all: list[StructType] = [ErrorBody, *_ERRORS.values()]
    return {
        _response_name(error, status): response
        for error in errors_of_all
        for status, response in _error_responses(error).items()
    }


def _response_name(error: StructType, status: str) -> str:
    return status if error is ErrorBody else f"{error.__name__}.{status}"


def _error_responses(error: StructType = ErrorBody) -> dict[str, JsonObject]:
    """Returns a response for each status, described by the docstrings of its exception classes."""
    reasons: dict[int, list[str]] = {}
    for kind in _DESCRIBED_ERRORS:
        reasons.setdefault(kind.status, []).append((kind.__doc__ or "").split("\n", 1)[0])
    content = {JSON: {"schema": schema_ref(error)}}
    return {
        str(status): {"description": " ".join(each), "content": content}
        for status, each in sorted(reasons.items())
    }


def lmi_error_responses() -> dict[str, JsonObject]:
    """Returns LMI's error responses, in the forms of its model handler and of its front end."""
    kinds: Mapping[str, StructType] = dict.fromkeys(
        _error_responses().keys() - {"400", "429"}, FrontEndError
    ) | {str(HTTPStatus.FAILED_DEPENDENCY.value): HandlerError}
    return {
        status: {
            "description": HTTPStatus(int(status)).phrase,
            "content": {JSON: {"schema": schema_ref(kind)}},
        }
        for status, kind in sorted(kinds.items())
    }
