"""What is removed is named first, with what that frees; nothing outside the two caches ever is.

Rules
1. Only directories directly in a cache are removed, that are no links themselves; no link in them is followed.
2. What a running server holds, or somebody is fetching, stays.
3. Weights lose their name before their files, so that no start finds a half of them.
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
    """The message names what cannot be removed, and why."""


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
    """Raises CannotRemove where a name is of nothing, or something is in use."""
    repositories: dict[Path, HubRepository] = {}
    kept: dict[Path, CacheEntry] = {}
    for name in names:
        repository, of_it = _find(inventory, name)
        if repository is not None and not weights_only:
            repositories[repository.path] = repository
        elif not of_it:
            raise CannotRemove(f"{name}: nothing is kept of it")
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
    if name in inventory.demos:
        return None, inventory.kept_of([inventory.demos[name]])
    path = Path(os.path.expanduser(name))
    if path.exists():
        if of_path := inventory.kept_of([path]):
            return None, of_path
        raise CannotRemove(f"{name}: nothing is kept of it, and what is in no cache is not removed")
    if any(name.startswith(f"{repository.repo_id}:") for repository in inventory.repositories):
        raise CannotRemove(
            f"{name}: a repository is removed as a whole; give {name.partition(':')[0]}"
        )
    raise CannotRemove(f"{name}: is neither a model nor an id that `ouzel list` shows")


def _refuse_what_is_in_use(removal: Removal) -> None:
    for kept in removal.kept:
        if kept.is_in_use:
            doing = (
                "is being made" if kept.kind == "unfinished" else "is in use by a running server"
            )
            raise CannotRemove(f"{kept.short_id} ({kept.path.name}) {doing}; stop that first")
    for repository in removal.repositories:
        if is_being_fetched(repository.path):
            raise CannotRemove(f"{repository.repo_id} is being fetched; stop that first")


def carry_out(removal: Removal) -> list[str]:
    """Returns what could not be removed, and why."""
    failures = [failure for kept in removal.kept for failure in _remove_kept(kept)]
    for repository in removal.repositories:
        failures += remove(repository.path)
        locks = repository.path.parent / ".locks"
        if not locks.is_symlink():
            remove(locks / repository.path.name)  # empty files, of no size
    return failures


def _remove_kept(kept: CacheEntry) -> Iterable[str]:
    if kept.kind == "unfinished":
        return remove(kept.path)
    try:
        aside = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=kept.path.parent))
        kept.path.rename(aside)  # an empty directory is replaced
    except OSError as error:
        return [f"{kept.path}: {error.strerror}"]
    return remove(aside)
