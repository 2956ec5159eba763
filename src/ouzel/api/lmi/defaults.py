"""Fills in fields that OpenAI's schemas require and LMI's bodies omit."""

from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.wire.decode import JsonObject, log_ignored
from ouzel.wire.validation_errors import show_value


def fill_defaults(fields: JsonObject, model: ServedModel) -> JsonObject:
    """Returns the fields with the model's name, and without a limit `top_k` unless one is set.

    In LMI the field `model` chooses nothing.
    """
    name = fields.get("model")
    if not isinstance(name, str | None):
        raise InvalidRequest(f"must be a string, given {show_value(name)}", field="model")
    if name is not None and name not in model.names:
        log_ignored({"model"})
    completed = {**fields, "model": model.names[0]}
    if fields.get("top_k") is None and model.sampling_defaults.top_k is None:
        completed["top_k"] = 0
    return completed
