"""Chooses the model of a request by its body.

An endpoint for one kind of model uses `choose_for`. Endpoints with other rules have functions of
their own.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.wrong_task import MADE, describe_wrong_task
from ouzel.errors import InvalidRequest
from ouzel.pooling import Task
from ouzel.wire.model_name import names_no_model

# takes the body, empty for requests without a body
ModelChoice = Callable[[Catalogue, Scope, bytes], Services]


class _Names(msgspec.Struct):
    """The fields of a body that name a model, undecoded: the endpoint reports errors in them."""

    model: msgspec.Raw = msgspec.Raw()
    name: msgspec.Raw = msgspec.Raw()


_names = msgspec.json.Decoder(_Names)
_string = msgspec.json.Decoder(str)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def choose_by_body(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Returns the model that the body names. Raises ModelNotFound.

    An unreadable body goes to the first model, which refuses it.
    """
    name = read_model_name(body)
    return catalogue.first if names_no_model(name) else catalogue.find(name)


def choose_for(*tasks: Task) -> ModelChoice:
    """Returns the choice of an endpoint for models with one of the tasks."""

    def choose(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
        return find_for(catalogue, read_model_name(body), *tasks)

    return choose


def find_for(catalogue: Catalogue, name: str, *tasks: Task) -> Services:
    """Returns the model with that name, which must have one of the tasks.

    Without a name it returns the first model for the first of the tasks that any model has. Raises
    ModelNotFound, EngineUnavailable, and InvalidRequest as `check_task` does.
    """
    if names_no_model(name):
        return catalogue.first_for(*tasks)
    return check_task(catalogue, catalogue.find(name), *tasks)


def check_task(catalogue: Catalogue, services: Services, *tasks: Task) -> Services:
    """Returns the model of a request, unless only other models have one of the tasks.

    Raises InvalidRequest with the names of these models. If no model has the tasks, the endpoint
    refuses the request, with an advice of its own.
    """
    if services.model.engine.info.task in tasks:
        return services
    able = [each.model for task in tasks for each in catalogue.list_for(task)]
    if not able:
        return services
    names = ", ".join(model.names[0] for model in able)
    raise InvalidRequest(
        f"{describe_wrong_task(services.model, tasks[0])}; "
        f"this server's models for {MADE[tasks[0]]}: {names}",
        param="model",
    )


def read_model_name(body: bytes, *, has_old_field: bool = False) -> str:
    """Returns the model name in a body: the field `model`, else the old field `name` if allowed.

    Returns an empty text if the field is not a string.
    """
    try:
        names = _names.decode(body.removeprefix(_BYTE_ORDER_MARK))
        name = _string.decode(names.model) if names.model else ""
        return name or (_string.decode(names.name) if has_old_field and names.name else "")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


Record = TypeVar("Record", bound=msgspec.Struct)


class _Stream(msgspec.Struct):
    stream: msgspec.Raw = msgspec.Raw()


def asks_for_stream(body: bytes) -> bool:
    """Tells whether the field `stream` of a body is true."""
    fields = read_fields(body, _Stream)
    return fields is not None and bytes(fields.stream) == b"true"


class _Background(msgspec.Struct):
    background: msgspec.Raw = msgspec.Raw()


def read_background(body: bytes) -> bool:
    """Tells whether the field `background` of a body is true."""
    fields = read_fields(body, _Background)
    return fields is not None and bytes(fields.background) == b"true"


def read_fields(body: bytes, record: type[Record]) -> Record | None:
    """Returns some fields of a body; None if they have other types: the endpoint reports errors."""
    try:
        return msgspec.json.decode(body.removeprefix(_BYTE_ORDER_MARK), type=record)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
