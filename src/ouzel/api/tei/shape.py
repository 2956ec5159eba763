"""The fields of a body tell which kind of work a TEI request asks for, and so which of several models does it.

TEI serves one model, so its clients name none: the first model that can do the work answers.
"""

import msgspec
from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import choose_by_body, read_model_name
from ouzel.api.endpoint.services import Services
from ouzel.wire.model_name import names_no_model


class Shape(msgspec.Struct):
    """The fields that tell requests apart, not decoded."""

    inputs: msgspec.Raw = msgspec.Raw()
    texts: msgspec.Raw = msgspec.Raw()
    documents: msgspec.Raw = msgspec.Raw()

    @property
    def is_ranking(self) -> bool:
        """Tells whether the body is TEI's for a ranking; other servers' clients send `documents`."""
        return is_given(self.texts) and not is_given(self.documents)


def shape_of(body: bytes) -> Shape:
    """Returns an empty shape for a body that cannot be read: the endpoint that reads it says what is wrong."""
    try:
        return msgspec.json.decode(body, type=Shape)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Shape()


def is_given(value: msgspec.Raw) -> bool:
    """Returns False for a field that the body lacks, and for null, which is the same."""
    return bytes(memoryview(value)[:4]) not in (b"", b"null")


def by_work(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses the model that the body names, else the first one that can do the work. Raises ModelNotFound."""
    if not names_no_model(read_model_name(body)):
        return choose_by_body(catalogue, scope, body)
    shape = shape_of(body)
    if shape.is_ranking:
        return catalogue.first_for("score", "embed")
    return catalogue.first_for("embed") if is_given(shape.inputs) else catalogue.first
