"""Which of several models a request is for is said by its body, mostly; the other ways are beside who has them."""

from collections.abc import Callable

import msgspec
from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.services import Services
from ouzel.wire.model_name import names_no_model

ModelChoice = Callable[
    [Catalogue, Scope, bytes], Services
]  # the body is empty for requests that have none


class _Names(msgspec.Struct):
    """Each as it came: whoever reads the body says what is wrong with it."""

    model: msgspec.Raw = msgspec.Raw()
    name: msgspec.Raw = msgspec.Raw()


_names = msgspec.json.Decoder(_Names)
_string = msgspec.json.Decoder(str)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def by_body(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Raises ModelNotFound. A body that cannot be read is for the first model, which refuses it."""
    name = name_in(body)
    return catalogue.first if names_no_model(name) else catalogue.find(name)


def name_in(body: bytes, *, has_old_field: bool = False) -> str:
    """Returns what the field `model` says, or else, with the old field, `name`; empty for everything but a string."""
    try:
        names = _names.decode(body.removeprefix(_BYTE_ORDER_MARK))
        name = _string.decode(names.model) if names.model else ""
        return name or (_string.decode(names.name) if has_old_field and names.name else "")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
