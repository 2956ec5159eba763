"""OpenAI's schemas ask for what LMI's leave out of a body; it is filled in here."""

from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.wire.decode import JsonObject, log_ignored
from ouzel.wire.validation_errors import shown


def with_defaults(fields: JsonObject, model: ServedModel) -> JsonObject:
    """`model` never chooses in LMI, and all tokens may be drawn where neither request nor model limits them."""
    name = fields.get("model")
    if not isinstance(name, str | None):
        raise InvalidRequest(f"must be a string, given {shown(name)}", field="model")
    if name is not None and name not in model.names:
        log_ignored({"model"})
    completed = {**fields, "model": model.names[0]}
    if fields.get("top_k") is None and model.sampling_defaults.top_k is None:
        completed["top_k"] = 0
    return completed
