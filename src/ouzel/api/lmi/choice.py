"""Chooses the model of an invocation: by path, query, custom attribute, header or adapter."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import read_model_name
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import get_header
from ouzel.api.lmi.adapters import UnknownAdapter, read_names
from ouzel.errors import ModelNotFound
from ouzel.generation import ServedModel

# the header's value: a=b;c=d
_CUSTOM_ATTRIBUTES = b"x-amzn-sagemaker-custom-attributes"
_ADAPTER_HEADER = b"x-amzn-sagemaker-adapter-identifier"
_MAX_SHOWN = 100  # longest part shown of a name, in characters


def choose_by_name(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses the model by the names outside the body, else by the names in the body.

    The name of an adapter overrides the name of a model. An unknown model name is ignored: the
    first model answers. Raises UnknownAdapter.
    """
    attributes = read_attributes(scope)
    adapter = adapter_beside_body(scope, attributes)
    adapters = [adapter] if adapter else read_names(body)
    if adapters:
        return _find_adapted(catalogue, adapters)
    name = _find_name(scope, attributes, "model_name") or read_model_name(body)
    for each in catalogue:
        if name in _list_spellings(each.model.names):
            return each
    catalogue.check_loading(*(away for away in catalogue.away if name in _list_spellings([away])))
    catalogue.check_loading(name)
    return catalogue.first


def _find_adapted(catalogue: Catalogue, adapters: Sequence[str]) -> Services:
    """Returns the model with the first of the adapters. All must be adapters of one model."""
    served = {each.model.adapter: each for each in catalogue if each.model.adapter}
    for name in adapters:
        if (
            name not in served
            or served[name].model.parent_names != served[adapters[0]].model.parent_names
        ):
            raise UnknownAdapter(name)
    return served[adapters[0]]


def check_model(model: ServedModel, scope: Scope, attributes: Mapping[str, str]) -> None:
    """Checks the names of model and adapter in the headers, the query and the path.

    Raises UnknownAdapter or ModelNotFound for another adapter or model, and ModelNotFound for any
    `model_version`: models have no versions. If `model` is an adapter, the name of its base model
    is allowed too.
    """
    adapter = adapter_beside_body(scope, attributes)
    if adapter and adapter != model.adapter:
        raise UnknownAdapter(adapter)
    names = _list_spellings(model.names) | _list_spellings(model.parent_names)
    for key in ("model_name", "model_version"):
        value = _find_name(scope, attributes, key)
        if value is not None and (key == "model_version" or value not in names):
            raise ModelNotFound(f"Model or workflow not found: {value[:_MAX_SHOWN]}", param=key)


def adapter_beside_body(scope: Scope, attributes: Mapping[str, str]) -> str:
    """Returns the adapter's name in a header, the query or a custom attribute, or an empty text."""
    return get_header(scope, _ADAPTER_HEADER) or _find_name(scope, attributes, "adapter") or ""


def read_attributes(scope: Scope) -> dict[str, str]:
    """Returns the custom attributes by their lower-case names."""
    text = get_header(scope, _CUSTOM_ATTRIBUTES) or ""
    pairs = (pair.partition("=") for pair in text.split(";") if pair.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _find_name(scope: Scope, attributes: Mapping[str, str], key: str) -> str | None:
    query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    path = scope["path_params"]
    return next(
        (place[key] for place in (path, query, attributes) if place.get(key)),
        get_header(scope, key.encode()),
    )


def _list_spellings(names: Sequence[str]) -> set[str]:
    """Returns the names, also in the spelling of LMI and of SageMaker endpoints."""
    lmis = (re.sub(r"\W", "_", name) for name in names)
    endpoints = (re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-") for name in names)
    return {*names, *lmis, *endpoints}
