"""Renames fields that other servers know under other names. This happens before a body is decoded.

The table holds only exact synonyms. An endpoint that has a field with the other name keeps that
field.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import show_value

JsonObject = dict[str, object]

# Maps the name at another server to our name.
ALIASES: Mapping[str, str] = {
    "bad_sequences": "bad_words",
    "ignore_eos_token": "ignore_eos",
    "max_new_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "n_predict": "max_tokens",
    "no_stop_trim": "include_stop_str_in_output",
    "normalized": "normalize",
    "num_predict": "max_tokens",
    "output_dimension": "dimensions",
    "penalty_last_n": "repeat_last_n",
    "random_seed": "seed",
    "repeat_penalty": "repetition_penalty",
    "sampling_seed": "seed",
    "stop_sequences": "stop",
    "typ_p": "typical_p",
}


@cache
def select_aliases(own_fields: tuple[str, ...]) -> dict[str, str]:
    """Returns the aliases that an endpoint with these fields reads, with our names for them."""
    return {
        alias: name
        for alias, name in ALIASES.items()
        if name in own_fields and alias not in own_fields
    }


def rename_aliases(body: JsonObject, own_fields: tuple[str, ...]) -> JsonObject:
    """Renames aliases in a body to our names.

    Raises InvalidRequest if a body has a field under both names with different values.
    """
    named = body
    for alias, name in select_aliases(own_fields).items():
        if alias not in body:
            continue
        named = {field: value for field, value in named.items() if field != alias}
        value, other = body[alias], named.get(name)
        if value is None:
            continue
        if other is not None and other != value:
            raise InvalidRequest(
                f"must be the same as {name}: {show_value(other)}, given {show_value(value)}",
                field=alias,
            )
        named[name] = value
    return named


def restore_client_name(
    error: InvalidRequest, parse: Callable[[], Mapping[str, object]]
) -> InvalidRequest:
    """Returns the error with the field name that the client used.

    `parse` returns the body. It is called only if the field has aliases.
    """
    path = error.param or ""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name not in ALIASES.values():
        return error
    body = parse()
    alias = next(
        (alias for alias in ALIASES if ALIASES[alias] == name and body.get(alias) is not None), None
    )
    return (
        error
        if alias is None or body.get(name) is not None
        else error.at(alias + path[len(name) :])
    )
