"""Matches Ollama's model names, which have a tag; the default tag is `latest`."""

from collections.abc import Iterable

from starlette.types import Scope

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import check_task, read_model_name
from ouzel.api.endpoint.services import Services
from ouzel.errors import ModelNotFound

_LATEST = ":latest"
_HUB_ADDRESSES = ("https://", "hf.co/", "huggingface.co/")  # removed one after the other


def full_name(name: str) -> str:
    """Returns the name with its tag, as Ollama lists it. A tag stands after the last slash."""
    return name if ":" in name.rpartition("/")[2] else name + _LATEST


def find_served_name(name: str, served_names: Iterable[str]) -> str | None:
    """Returns the served name that a request means, or None."""
    wanted = full_name(_strip_address(name))
    for served in served_names:
        if full_name(served) in (full_name(name), wanted):
            return served
    return None


def strip_defaults(name: str) -> str:
    """Returns the name without the hub's address and the default tag: clients add both."""
    return _strip_address(name).removesuffix(_LATEST)


def _strip_address(name: str) -> str:
    for address in _HUB_ADDRESSES:
        name = name.removeprefix(address)
    return name


def list_names(served_names: Iterable[str]) -> list[str]:
    """Returns the names that a request may use: without and with a tag."""
    names = list(served_names)
    return list(dict.fromkeys((*names, *map(full_name, names))))


def choose_by_tagged_name(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses the model by its name, with or without a tag.

    Raises ModelNotFound and EngineUnavailable.
    """
    name = read_model_name(body, has_old_field=True)
    for each in catalogue:
        if name and find_served_name(name, each.model.names) is not None:
            return each
    away = find_served_name(name, catalogue.away) if name else None
    catalogue.check_loading(*([away] if away else ()), name, name.removesuffix(_LATEST))
    check_name(name, ())
    return catalogue.first


def choose_to_embed(catalogue: Catalogue, scope: Scope, body: bytes) -> Services:
    """Chooses a model that makes embeddings; without a name, the first such model.

    Raises ModelNotFound, EngineUnavailable, and InvalidRequest as `check_task` does.
    """
    if not read_model_name(body, has_old_field=True):
        return catalogue.first_for("embed")
    return check_task(catalogue, choose_by_tagged_name(catalogue, scope, body), "embed")


def check_name(name: str | None, served_names: Iterable[str]) -> None:
    """Raises ModelNotFound for an unknown name. An absent or empty name means the served model."""
    if name and find_served_name(name, served_names) is None:
        raise ModelNotFound(f"model '{name[:100]}' not found", param="model")
