"""What LMI's schemas leave out of a body and OpenAI's ask for."""

from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.wire.decode import JsonObject, log_ignored
from ouzel.wire.validation_errors import shown


def with_defaults(given: JsonObject, model: ServedModel) -> JsonObject:
    """`model` never chooses in LMI, and all tokens may be drawn where neither request nor model limits them."""
    named = given.get("model")
    if not isinstance(named, str | None):
        raise InvalidRequest(f"must be a string, given {shown(named)}", field="model")
    if named is not None and named not in model.names:
        log_ignored({"model"})
    completed = {**given, "model": model.names[0]}
    if given.get("top_k") is None and model.sampling_defaults.top_k is None:
        completed["top_k"] = 0
    return completed
