"""Which model an invocation is for: the path, the query, a custom attribute, a header or an adapter names it."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import read_model_name
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import get_header
from ouzel.api.lmi.adapters import UnknownAdapter, names_in
from ouzel.errors import ModelNotFound
from ouzel.generation import ServedModel

_CUSTOM_ATTRIBUTES = b"x-amzn-sagemaker-custom-attributes"  # a=b;c=d
_ADAPTER_HEADER = b"x-amzn-sagemaker-adapter-identifier"
_MAX_SHOWN = 100  # characters of a name


def by_name(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses by the names beside the body, else by the body, in which the name of an unknown model changes nothing.

    An adapter that is named comes before a model. Raises UnknownAdapter.
    """
    attributes = read_attributes(scope)
    adapter = adapter_beside_body(scope, attributes)
    adapters = [adapter] if adapter else names_in(body)
    if adapters:
        return _adapted(catalogue, adapters)
    name = _named(scope, attributes, "model_name") or read_model_name(body)
    for each in catalogue:
        if name in _spellings(each.model.names):
            return each
    catalogue.check_loading(name)
    return catalogue.first


def _adapted(catalogue: Catalogue, adapters: Sequence[str]) -> Services:
    """Returns the model with the first of the adapters; all must be adapters of one model."""
    served = {each.model.adapter: each for each in catalogue if each.model.adapter}
    for name in adapters:
        if (
            name not in served
            or served[name].model.parent_names != served[adapters[0]].model.parent_names
        ):
            raise UnknownAdapter(name)
    return served[adapters[0]]


def check_model(model: ServedModel, scope: Scope, attributes: Mapping[str, str]) -> None:
    """Raises UnknownAdapter or ModelNotFound where another name than the model's stands beside the body.

    Models have no versions. A client that names an adapter may also name the model that it adapts.
    """
    adapter = adapter_beside_body(scope, attributes)
    if adapter and adapter != model.adapter:
        raise UnknownAdapter(adapter)
    names = _spellings(model.names) | _spellings(model.parent_names)
    for key in ("model_name", "model_version"):
        value = _named(scope, attributes, key)
        if value is not None and (key == "model_version" or value not in names):
            raise ModelNotFound(f"Model or workflow not found: {value[:_MAX_SHOWN]}", param=key)


def adapter_beside_body(scope: Scope, attributes: Mapping[str, str]) -> str:
    """Returns the name of an adapter in a header, the query or a custom attribute; else an empty text."""
    return get_header(scope, _ADAPTER_HEADER) or _named(scope, attributes, "adapter") or ""


def read_attributes(scope: Scope) -> dict[str, str]:
    """Returns the custom attributes by their names in small letters."""
    text = get_header(scope, _CUSTOM_ATTRIBUTES) or ""
    pairs = (pair.partition("=") for pair in text.split(";") if pair.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _named(scope: Scope, attributes: Mapping[str, str], key: str) -> str | None:
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    path = scope["path_params"]
    return next(
        (place[key] for place in (path, query, attributes) if place.get(key)),
        get_header(scope, key.encode()),
    )


def _spellings(names: Sequence[str]) -> set[str]:
    """Returns the names, with their spellings in LMI and as names of SageMaker endpoints."""
    lmis = (re.sub(r"\W", "_", name) for name in names)
    endpoints = (re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-") for name in names)
    return {*names, *lmis, *endpoints}
