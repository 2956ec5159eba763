"""Finds the adapter for each input of an invocation.

The header X-Amzn-SageMaker-Adapter-Identifier, the query or a custom attribute names one adapter
for all inputs; then names in the body are ignored. Else `adapters` in the body has a name for all
inputs, or a list with a name for each; an empty name means no adapter. `parameters.adapter_id` is
the field of text-generation-inference.

`choice.choose_by_name` has sent the request to the model of its first adapter, and has refused
adapters of other models. So a model without an adapter refuses every name, and a model with an
adapter takes all names.
"""

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.wire.decode import JsonObject
from ouzel.wire.validation_errors import show_value

_MAX_SHOWN = 100  # longest part shown of a name, in characters


class UnknownAdapter(InvalidRequest):
    """Refuses the name of an adapter that the model of the request lacks."""

    def __init__(self, name: str) -> None:
        super().__init__("no adapter is registered", param="adapters")
        self._name = name[:_MAX_SHOWN]

    def __str__(self) -> str:
        """Returns LMI's sentence."""
        return f"Adapter {self._name} is not registered"


class _Parameters(msgspec.Struct):
    adapter_id: str | None = None


class _Names(msgspec.Struct):
    adapters: str | list[str] | None = None
    parameters: _Parameters | None = None


def read_names(body: bytes) -> list[str]:
    """Returns the adapter names in a JSON body, without empty names.

    The list is empty if the body is not JSON or has no such field.
    """
    try:
        named = msgspec.json.decode(body, type=_Names)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []
    adapters = named.adapters or (named.parameters.adapter_id if named.parameters else None) or []
    return [name for name in ([adapters] if isinstance(adapters, str) else adapters) if name]


def take_adapters(
    fields: JsonObject, model: ServedModel, *, num_inputs: int, beside_body: str = ""
) -> list[str]:
    """Removes the names from the fields, and returns the name of the adapter of each input.

    `beside_body` is the name in a header, the query or a custom attribute. Raises InvalidRequest.
    """
    named = _take_names(fields)
    if beside_body:
        return [beside_body] * num_inputs
    if not named:
        return [model.adapter] * num_inputs
    for name in [named] if isinstance(named, str) else named:
        if name and not model.adapter:
            raise UnknownAdapter(name)
    if isinstance(named, str):
        return [named] * num_inputs
    if len(named) != num_inputs:
        raise InvalidRequest(
            "Number of adapters is not equal to the number of inputs, "
            f"given {len(named)} and {num_inputs}",
            param="adapters",
        )
    return named


def _take_names(fields: JsonObject) -> str | list[str]:
    """Removes both fields, and returns their names.

    Raises InvalidRequest if the fields differ, or have a wrong type.
    """
    adapters, adapter_id = fields.pop("adapters", None), None
    parameters = fields.get("parameters")
    if isinstance(parameters, dict):
        rest = dict(parameters)
        adapter_id = rest.pop("adapter_id", None)
        fields["parameters"] = rest
    if not isinstance(adapter_id, str | None):
        raise InvalidRequest(
            f"must be a string, given {show_value(adapter_id)}", field="adapter_id"
        )
    if adapters and adapter_id and adapters != adapter_id:
        raise InvalidRequest(
            f"must be the name in adapters, given {show_value(adapter_id)}", field="adapter_id"
        )
    try:
        return msgspec.convert(adapters or adapter_id or "", str | list[str])
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"must be a string or a list of strings, given {show_value(adapters)}", field="adapters"
        ) from error
