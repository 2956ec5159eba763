"""Reads the inventory of this disk: the hub's cache, Ouzel's, and the demos."""

from pathlib import Path

from ouzel.config.cache_root import cache_root
from ouzel.demo import MODEL_DIRECTORY, VISION_MODEL_DIRECTORY
from ouzel.errors import OuzelError
from ouzel.model_store.hub_cache import cache_directory, repositories
from ouzel.model_store.inventory import Inventory
from ouzel.model_store.kept import kept_in

DEMOS: dict[str, Path] = {
    "ouzel-demo": MODEL_DIRECTORY,
    "ouzel-demo-vision": VISION_MODEL_DIRECTORY,
}


def read_inventory(cache_dir: str) -> Inventory:
    """Returns the models and stored files on this disk. Raises OuzelError for unreadable caches."""
    try:
        found, kept = repositories(cache_directory()), kept_in(cache_root(cache_dir))
    except PermissionError as error:
        raise OuzelError(f"{error.filename} cannot be read: {error.strerror}") from error
    return Inventory(repositories=tuple(found), kept=tuple(kept), demos=DEMOS)
