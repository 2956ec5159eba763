"""Tells whether a model is on this disk, without asking the hub."""

from pathlib import Path

from ouzel.errors import OuzelError
from ouzel.model_store.catalogue.whereabouts import resolve_model
from ouzel.model_store.hub_reference import is_on_disk


def is_here(model: str, cache_dir: str = "", catalogue: str = "") -> bool:
    """Tells whether MODEL is a path, or its files are in one of the caches; "" is the demo model.

    A path that is gone, and a name without a meaning, is not here.
    """
    try:
        return (
            not model or Path(model).expanduser().exists() or is_pulled(model, cache_dir, catalogue)
        )
    except (OSError, RuntimeError):
        return False


def is_pulled(name: str, cache_dir: str = "", catalogue: str = "") -> bool:
    """Tells whether all files of a repository, or of a short name, are in one of the caches."""
    try:
        origin = resolve_model(name, cache_dir, catalogue)
    # no such name, a name that is too long for a path, or `~` and an unknown user
    except (OuzelError, OSError, RuntimeError):
        return False
    if origin.kind == "hub":
        return is_on_disk(name)
    return origin.kind == "catalogue" and origin.on_disk is not None
