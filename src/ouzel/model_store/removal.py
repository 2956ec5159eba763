"""Plans the removal of models, and removes them; only files of the two caches are removed.

Rules
1. Only directories directly below a cache are removed; a link is not removed, and none is followed.
2. Files that a running server uses, and files that are being downloaded, stay.
3. A directory of weights is renamed before its files go, so that no start finds half of them.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouzel.errors import OuzelError
from ouzel.model_store.disk import remove
from ouzel.model_store.hub_cache import HubRepository, is_being_fetched
from ouzel.model_store.inventory import Inventory
from ouzel.model_store.kept import CacheEntry


class CannotRemove(OuzelError):
    """The message names the file or model that cannot be removed, with the reason."""


@dataclass(frozen=True, slots=True)
class Removal:
    repositories: tuple[HubRepository, ...]
    kept: tuple[CacheEntry, ...]

    @property
    def num_bytes(self) -> int:
        repositories = sum(each.size_bytes for each in self.repositories)
        return repositories + sum(each.size_bytes for each in self.kept)


def plan_removal(
    inventory: Inventory, names: Sequence[str], *, weights_only: bool, stale: bool
) -> Removal:
    """Raises CannotRemove if a name matches nothing, or a file is in use."""
    repositories: dict[Path, HubRepository] = {}
    kept: dict[Path, CacheEntry] = {}
    for name in names:
        repository, of_it = _find(inventory, name)
        if weights_only:
            of_it = [each for each in of_it if each.kind != "pulled"]
        if repository is not None and not weights_only:
            repositories[repository.path] = repository
        elif not of_it:
            raise CannotRemove(f"{name}: Ouzel has stored no files of this model")
        kept |= {each.path: each for each in of_it}
    if stale:
        kept |= {each.path: each for each in inventory.kept if each.stale}
    removal = Removal(tuple(repositories.values()), tuple(kept.values()))
    _refuse_what_is_in_use(removal)
    return removal


def _find(inventory: Inventory, name: str) -> tuple[HubRepository | None, list[CacheEntry]]:
    by_id = [each for each in inventory.kept if name in (each.short_id, each.path.name)]
    if by_id:
        return None, by_id
    for repository in inventory.repositories:
        if repository.repo_id == name:
            return repository, inventory.kept_of_repository(repository)
    for pulled in inventory.pulled:
        if pulled.name == name:
            return None, [pulled, *inventory.list_made_of_pulled(pulled)]
    if name in inventory.demos:
        return None, inventory.list_entries([inventory.demos[name]])
    path = Path(os.path.expanduser(name))
    if path.exists():
        if of_path := inventory.list_entries([path]):
            return None, of_path
        raise CannotRemove(
            f"{name}: Ouzel has stored no files of it, and files outside the caches are not removed"
        )
    if any(name.startswith(f"{repository.repo_id}:") for repository in inventory.repositories):
        raise CannotRemove(
            f"{name}: only a whole repository can be removed; give {name.partition(':')[0]}"
        )
    raise CannotRemove(f"{name}: must be a model or an id that `ouzel list` shows")


def _refuse_what_is_in_use(removal: Removal) -> None:
    for kept in removal.kept:
        if kept.is_in_use:
            doing = (
                "is being made" if kept.kind == "unfinished" else "is in use by a running server"
            )
            raise CannotRemove(
                f"{kept.short_id} ({kept.path.name}) {doing}; stop that process first"
            )
    for repository in removal.repositories:
        if is_being_fetched(repository.path):
            raise CannotRemove(f"{repository.repo_id} is being downloaded; stop that process first")


def carry_out(removal: Removal) -> list[str]:
    """Removes the planned files; returns the paths that could not be removed, with reasons."""
    failures = [failure for kept in removal.kept for failure in _remove_kept(kept)]
    for repository in removal.repositories:
        failures += remove(repository.path)
        locks = repository.path.parent / ".locks"
        if not locks.is_symlink():
            remove(locks / repository.path.name)  # empty lock files, whose size does not count
    return failures


def _remove_kept(kept: CacheEntry) -> Iterable[str]:
    if kept.kind == "unfinished":
        return remove(kept.path)
    try:
        aside = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=kept.path.parent))
        kept.path.rename(aside)  # rename replaces an empty directory
    except OSError as error:
        return [f"{kept.path}: {error.strerror}"]
    return remove(aside)
