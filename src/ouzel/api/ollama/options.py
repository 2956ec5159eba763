"""Reads `options`: sampling options under Ollama's names.

Options about the machine have no effect.
"""

from typing import Annotated

from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.sampling import SamplingFields
from ouzel.wire.fields import StopString

_RANDOM_SEED = -1
_NO_PENALTIES = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}


class ModelOptions(SamplingFields, kw_only=True):
    """Ollama's options and Ouzel's own sampling fields. Unknown options are ignored."""

    num_predict: (
        Annotated[
            int,
            Meta(
                ge=-2,
                description="Limit of generated tokens; 0 or less: as many as fit.",
            ),
        ]
        | None
    ) = None
    stop: Annotated[
        StopString | Annotated[list[StopString], Meta(max_length=64)] | None,
        Meta(description="Texts that end the output."),
    ] = None
    repeat_penalty: (
        Annotated[
            float,
            Meta(ge=0.01, le=10.0, description="The same as repetition_penalty; overrides it."),
        ]
        | None
    ) = None
    penalize_newline: Annotated[bool | None, Meta(description="Only true if penalties are on.")] = (
        None
    )
    mirostat: (
        Annotated[int, Meta(ge=0, le=0, description="Only 0: it is not supported.")] | None
    ) = None
    tfs_z: (
        Annotated[float, Meta(ge=1.0, le=1.0, description="Only 1: it is not supported.")] | None
    ) = None


def read_sampling(options: ModelOptions, model: ServedModel) -> dict[str, object]:
    """Returns our sampling fields. Raises InvalidRequest for penalties that spare line breaks."""
    fields = {name: getattr(options, name) for name in SamplingFields.__struct_fields__}
    if options.seed == _RANDOM_SEED:
        fields["seed"] = None
    if options.repeat_penalty is not None:
        fields["repetition_penalty"] = options.repeat_penalty
    if (
        options.penalize_newline is False
        and options.repeat_last_n != 0
        and _are_penalties_on(fields, model)
    ):
        raise InvalidRequest(
            "must be true while penalties are on, given false", field="options.penalize_newline"
        )
    return fields


def _are_penalties_on(fields: dict[str, object], model: ServedModel) -> bool:
    values = {
        name: getattr(model.sampling_defaults, name) if fields[name] is None else fields[name]
        for name in _NO_PENALTIES
    }
    return any(values[name] not in (None, neutral) for name, neutral in _NO_PENALTIES.items())
