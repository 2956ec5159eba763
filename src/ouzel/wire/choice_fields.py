"""Defines the request fields for the number of outputs and the way to find them.

Outputs are samples, the best of more samples, or the result of a beam search. The field names are
OpenAI's (`n`, `best_of`), vLLM's (`use_beam_search`, with `best_of` as the number of beams) and
transformers' (`num_beams`, `num_return_sequences` and others).
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import Choosing
from ouzel.sampling import DRAWING_FIELDS, BeamSearchParams, SamplingFields


class ChoiceFields(SamplingFields, kw_only=True):
    """The sampling and choice fields. `None` means that the client did not set the field."""

    n: (
        Annotated[
            int, Meta(ge=1, description="Number of choices; at most the server's max_choices.")
        ]
        | None
    ) = None
    num_return_sequences: Annotated[int, Meta(ge=1, description="The same as n.")] | None = None
    best_of: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="Draws this number of samples and returns the n with the highest mean "
                "log probability; all count as usage. With use_beam_search: the number of beams. "
                "At most the server's max_choices.",
            ),
        ]
        | None
    ) = None
    use_beam_search: Annotated[
        bool | None,
        Meta(
            description="Searches for the most likely outputs; draws nothing, so seed has no "
            "effect."
        ),
    ] = None
    num_beams: (
        Annotated[
            int,
            Meta(
                ge=1, description="Number of beams; above 1 is beam search. At most max_num_seqs."
            ),
        ]
        | None
    ) = None
    num_beam_groups: (
        Annotated[
            int, Meta(ge=1, description="Groups of beams that diversity_penalty keeps apart.")
        ]
        | None
    ) = None
    diversity_penalty: (
        Annotated[
            float,
            Meta(
                ge=0.0,
                le=100.0,
                description="Beam groups: subtracted per beam of earlier groups with the same "
                "token in the same step.",
            ),
        ]
        | None
    ) = None
    length_penalty: (
        Annotated[
            float,
            Meta(
                ge=-10.0,
                le=10.0,
                description="Beam search: a score is the log probability / length ** this; above 0 "
                "favours long outputs.",
            ),
        ]
        | None
    ) = None
    early_stopping: Annotated[
        bool | Literal["never"] | None,
        Meta(
            description="Beam search: true ends it at num_beams finished beams, false when a "
            'better beam is unlikely, "never" when a better beam is impossible.'
        ),
    ] = None


# Beam search fields and their neutral values. Other values require a beam search.
_BEAM_SEARCH_FIELDS: Mapping[str, tuple[object, ...]] = {
    "num_beam_groups": (1,),
    "diversity_penalty": (0,),
    "length_penalty": (1,),
    "early_stopping": (False,),
}


def read_choosing(body: ChoiceFields, *, max_choices: int) -> Choosing:
    """Reads the number of choices and the beam search.

    Raises InvalidRequest if fields contradict each other or exceed `max_choices`.
    """
    choosing = _read_unlimited(body)
    beam_search = choosing.beam_search
    if choosing.n > max_choices:
        name = "n" if body.n is not None else "num_return_sequences"
        raise InvalidRequest(f"must be <= {max_choices}, given {choosing.n}", field=name)
    if choosing.best_of > max_choices:
        raise InvalidRequest(f"must be <= {max_choices}, given {choosing.best_of}", field="best_of")
    if beam_search is not None and beam_search.width > max_choices:
        name = choosing.width_param
        raise InvalidRequest(
            f"must be <= {max_choices} in a beam search, given {beam_search.width}", field=name
        )
    return choosing


def _read_unlimited(body: ChoiceFields) -> Choosing:
    n = _n(body)
    if not (body.use_beam_search or (body.num_beams or 1) > 1):
        if (name := _first_in_effect(body, _BEAM_SEARCH_FIELDS)) is not None:
            needed = "beam search (use_beam_search, or num_beams > 1)"
            raise InvalidRequest(f"needs {needed}, given {_value_as_json(body, name)}", field=name)
        best_of = body.best_of or n
        if best_of < n:
            raise InvalidRequest(
                f"must be >= {n}, the number of choices, given {best_of}", field="best_of"
            )
        return Choosing(n, best_of, None)
    if body.use_beam_search is False:
        raise InvalidRequest(
            f"must be 1 without use_beam_search, given {body.num_beams}", field="num_beams"
        )
    if (name := _first_in_effect(body, DRAWING_FIELDS)) is not None:
        neutral = msgspec.json.encode(DRAWING_FIELDS[name][0]).decode()
        raise InvalidRequest(
            f"must be {neutral} in a beam search, given {_value_as_json(body, name)}", field=name
        )
    return Choosing(n, n, _beam_search(body, n), _width_field(body))


def _width_field(body: ChoiceFields) -> str:
    """Returns the name of the field that sets the number of beams."""
    return next(
        (name for name in ("num_beams", "best_of", "n") if getattr(body, name) is not None),
        "use_beam_search",
    )


def _n(body: ChoiceFields) -> int:
    if body.n is None or body.num_return_sequences in (None, body.n):
        return body.n or body.num_return_sequences or 1
    name = "num_return_sequences"
    raise InvalidRequest(
        f"must be {body.n}, the same as n, given {body.num_return_sequences}", field=name
    )


def _beam_search(body: ChoiceFields, n: int) -> BeamSearchParams:
    width = body.num_beams or body.best_of or n
    num_groups, penalty = body.num_beam_groups or 1, body.diversity_penalty or 0.0
    if body.best_of not in (None, width):
        raise InvalidRequest(
            f"must be {width}, the same as num_beams, given {body.best_of}", field="best_of"
        )
    if width < n:
        name = _width_field(body)
        raise InvalidRequest(f"must be >= {n}, the number of choices, given {width}", field=name)
    if width % num_groups:
        name = "num_beam_groups"
        raise InvalidRequest(
            f"must divide the number of beams, {width}, given {num_groups}", field=name
        )
    if num_groups > 1 and penalty == 0:
        name = "diversity_penalty"
        raise InvalidRequest(
            f"must be > 0 with num_beam_groups, given {penalty:g}: all find the same", field=name
        )
    if num_groups == 1 and penalty > 0:
        name = "diversity_penalty"
        raise InvalidRequest(f"needs num_beam_groups > 1, given {penalty:g}", field=name)
    return BeamSearchParams(
        width=width,
        num_groups=num_groups,
        diversity_penalty=penalty,
        length_penalty=1.0 if body.length_penalty is None else body.length_penalty,
        early_stopping=body.early_stopping or False,
    )


def _first_in_effect(
    body: ChoiceFields, neutral_values: Mapping[str, tuple[object, ...]]
) -> str | None:
    """Returns the name of the first field with a value that is not neutral."""
    fields = ((name, getattr(body, name), neutral) for name, neutral in neutral_values.items())
    return next(
        (name for name, value, neutral in fields if value is not None and value not in neutral),
        None,
    )


def _value_as_json(body: ChoiceFields, name: str) -> str:
    return msgspec.json.encode(getattr(body, name)).decode()
