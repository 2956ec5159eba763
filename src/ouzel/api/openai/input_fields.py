"""Refuses fields of a request that has one of several inputs, if they go with other inputs."""

from collections.abc import Collection, Mapping, Sequence

from ouzel.errors import InvalidRequest


def refuse_fields_of_others(
    given: str, names: Collection[str], goes_with: Mapping[str, Sequence[str]]
) -> None:
    """Raises InvalidRequest for a field among `names` that does not go with the given input.

    `names` are the fields of the request that have an effect.
    """
    for name, inputs in goes_with.items():
        if name in names and given not in inputs:
            raise InvalidRequest(f"goes with {' or '.join(inputs)}, given {given}", field=name)
