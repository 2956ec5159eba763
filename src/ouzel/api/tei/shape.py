"""Finds the kind of work in a TEI request by its fields, and chooses the model for it.

TEI serves one model, so its clients name none: the first model that can do the work answers.
"""

import msgspec
from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import choose_by_body, choose_for, read_model_name
from ouzel.api.endpoint.services import Services
from ouzel.wire.model_name import names_no_model


class Shape(msgspec.Struct):
    """The fields that tell requests apart, undecoded."""

    inputs: msgspec.Raw = msgspec.Raw()
    texts: msgspec.Raw = msgspec.Raw()
    documents: msgspec.Raw = msgspec.Raw()

    @property
    def is_ranking(self) -> bool:
        """Tells whether the body is a TEI ranking. Other servers' clients send `documents`."""
        return is_present(self.texts) and not is_present(self.documents)


def read_shape(body: bytes) -> Shape:
    """Returns the shape of a body; an unreadable body has an empty shape.

    The endpoint that decodes the body reports the error.
    """
    try:
        return msgspec.json.decode(body, type=Shape)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Shape()


def is_present(value: msgspec.Raw) -> bool:
    """Tells whether a body has a field. A null field is absent."""
    return bytes(memoryview(value)[:4]) not in (b"", b"null")


def choose_by_work(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses the model that the body names, else the first model that can do the work.

    Bodies of other servers' clients are chosen for as in /v1/rerank. Raises ModelNotFound,
    EngineUnavailable, and InvalidRequest.
    """
    shape = read_shape(body)
    if is_present(shape.documents) and not is_present(shape.inputs):
        return choose_for("score", "embed")(catalogue, scope, body)
    if not names_no_model(read_model_name(body)):
        return choose_by_body(catalogue, scope, body)
    if shape.is_ranking:
        return catalogue.first_for("score", "embed")
    return catalogue.first_for("embed") if is_present(shape.inputs) else catalogue.first
