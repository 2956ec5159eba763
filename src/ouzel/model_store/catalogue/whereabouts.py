"""Tells where a model comes from, and where it is on this disk."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ouzel.config.cache_root import cache_root
from ouzel.errors import ModelLoadError
from ouzel.model_store.catalogue.entry import Entry
from ouzel.model_store.catalogue.packages import find_pulled
from ouzel.model_store.catalogue.reader import Catalogue, read_catalogue
from ouzel.model_store.hub_cache import PREFIX, cache_directory
from ouzel.model_store.hub_reference import HubReference, has_all_weights
from ouzel.terminal.suggestion import did_you_mean

_MAX_SHOWN = 100  # characters of a name in a message
_LIKENESS = 0.85  # difflib's ratio of a mistyped name


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a model comes from."""

    model: str  # MODEL as the user wrote it
    kind: Literal["path", "hub", "catalogue"]
    entry: Entry | None  # set for the kind "catalogue" only
    on_disk: Path | None  # directory or GGUF file; None before the download

    @property
    def repository(self) -> str:
        """Returns owner/name on the hub; empty for a path, and for a model of packages alone."""
        if self.kind == "catalogue":
            return self.entry.repository if self.entry else ""
        return self.model.partition(":")[0] if self.kind == "hub" else ""


def resolve_model(model: str, cache_dir: str = "", catalogue: str = "") -> Origin:
    """Finds the origin of a model, without a download.

    An existing path counts first, then owner/name, then a name of the catalogue. Raises
    ModelLoadError for any other name.
    """
    path = Path(os.path.expanduser(model))
    try:
        is_path = path.exists()
    except (OSError, ValueError) as error:  # the name is too long, or has a null byte
        raise ModelLoadError(f"{model[:_MAX_SHOWN]} cannot be read: {error}") from error
    if is_path:
        return Origin(model, "path", None, path)
    if "/" in model:
        repo_id, _, file = model.partition(":")
        return Origin(model, "hub", None, find_snapshot(repo_id, file))
    entry = find_entry(model, read_catalogue(catalogue))
    return Origin(model, "catalogue", entry, find_on_disk(entry, cache_dir))


def name_stored_model(model: str, cache_dir: str = "", catalogue: str = "") -> str:
    """Returns the name of the stored files: a short name stands for a repository, or for packages.

    Raises ModelLoadError for a name that is neither a path, nor a repository, nor a short name.
    """
    entry = resolve_model(model, cache_dir, catalogue).entry
    if entry is None:
        return model
    if find_pulled(entry, cache_root(cache_dir)) or not entry.repository:
        return entry.name
    return entry.repository_model


def find_entry(name: str, catalogue: Catalogue) -> Entry:
    """Raises ModelLoadError with suggestions for an unknown name."""
    if entry := catalogue.get(name.lower()):
        return entry
    family, colon, _ = name.lower().partition(":")
    sizes = ", ".join([known for known in catalogue if known.startswith(f"{family}:")])
    if sizes and not colon:
        raise ModelLoadError(f"{name}: name a size: {sizes}")
    hint = did_you_mean([name.lower()], catalogue, likeness=_LIKENESS)
    if sizes and not hint:
        hint = f"; this family has {sizes}"
    raise ModelLoadError(
        f"there is no directory or GGUF file {name[:_MAX_SHOWN]}, and the catalogue has no such "
        f"short name{hint}; ouzel models lists all"
    )


def find_on_disk(entry: Entry, cache_dir: str = "") -> Path | None:
    """Returns the directory or GGUF file of a model that is on this disk, else None."""
    if pulled := find_pulled(entry, cache_root(cache_dir)):
        return pulled
    return find_snapshot(entry.repository, entry.file, entry.revision) if entry.repository else None


def find_snapshot(repo_id: str, file: str = "", branch: str = "main") -> Path | None:
    """Returns the complete snapshot of a repository in the hub's cache, or its GGUF file."""
    folder = cache_directory() / f"{PREFIX}{repo_id.replace('/', '--')}"
    try:
        revision = (folder / "refs" / branch).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        revision = branch  # perhaps a commit
    snapshot = folder / "snapshots" / revision
    if not snapshot.is_dir():
        return None
    if file:
        files = HubReference(repo_id, file).find_gguf_files(snapshot)
        return files[0] if files else None
    return snapshot if has_all_weights(snapshot) else None
