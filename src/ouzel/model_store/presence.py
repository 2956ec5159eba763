"""Tells whether a model is on this disk, without asking the hub."""

import os.path
from pathlib import Path

from ouzel.errors import OuzelError
from ouzel.model_store.catalogue.whereabouts import resolve_model
from ouzel.model_store.hub_reference import is_on_disk


def is_here(model: str, cache_dir: str = "", catalogue: str = "") -> bool:
    """Tells whether MODEL is a path, or its files are in one of the caches; "" is the demo model.

    A path that is gone, and a name without a meaning, is not here.
    """
    try:
        is_path = not model or Path(os.path.expanduser(model)).exists()
    except (OSError, ValueError):  # the name is too long, or has a null byte
        return False
    return is_path or is_pulled(model, cache_dir, catalogue)


def is_pulled(name: str, cache_dir: str = "", catalogue: str = "") -> bool:
    """Tells whether all files of a repository, or of a short name, are in one of the caches."""
    try:
        origin = resolve_model(name, cache_dir, catalogue)
    except OuzelError:  # no such name
        return False
    if origin.kind == "hub":
        return is_on_disk(name)
    return origin.kind == "catalogue" and origin.on_disk is not None
