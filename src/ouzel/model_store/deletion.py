"""Deletes the model of a name: a repository of the hub's cache, one of its GGUF models, or a model
that Python packages carried.

Rules
1. Files that a model of the calling server uses stay, and files that another process has locked.
2. The blob of a GGUF file goes if no other name in the repository's snapshots leads to it.
3. The last model of a repository goes with the whole repository.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouzel.gguf.files import is_projector
from ouzel.model_store.hub_cache import HubRepository
from ouzel.model_store.hub_reference import HubReference, read_reference
from ouzel.model_store.inventory import Inventory
from ouzel.model_store.removal import CannotRemove, Removal, carry_out, plan_removal


class NothingStored(CannotRemove):
    """The message names the model, of which no file is on this disk."""


class InUse(CannotRemove):
    """The message names the model, and the reason why it is in use."""


@dataclass(frozen=True, slots=True)
class Deletion:
    removal: Removal
    files: tuple[Path, ...] = ()  # files and links of one GGUF model, where others stay

    @property
    def num_bytes(self) -> int:
        links = sum(path.lstat().st_size for path in self.files if path.exists())
        return self.removal.num_bytes + links


def delete_model(inventory: Inventory, name: str, in_use: Iterable[Path]) -> int:
    """Deletes a model and returns the number of bytes that became free.

    `in_use` are the directories of loaded models. Raises NothingStored, InUse and CannotRemove.
    """
    deletion = plan_deletion(inventory, name, in_use)
    num_bytes = deletion.num_bytes
    failures = carry_out(deletion.removal)
    for path in deletion.files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"{path}: {error.strerror}")
    if failures:
        raise CannotRemove(f"{len(failures)} files could not be removed: {'; '.join(failures[:8])}")
    return num_bytes


def plan_deletion(inventory: Inventory, name: str, in_use: Iterable[Path]) -> Deletion:
    """Lists the files to delete, without deleting any. Raises NothingStored and InUse."""
    for pulled in inventory.pulled:
        if pulled.name == name:
            entries = [pulled, *inventory.list_made_of_pulled(pulled)]
            _refuse_loaded(name, [each.path for each in entries], in_use)
            return Deletion(_plan_whole(inventory, name))
    reference = read_reference(name)
    repository = None if reference is None else _find_repository(inventory, reference)
    if reference is None or repository is None:
        raise NothingStored(f"the model {name[:100]!r} is not on this disk")
    if reference.gguf and (planned := _plan_gguf(inventory, repository, reference)):
        _refuse_loaded(name, [each.path for each in planned.removal.kept], in_use)
        return planned
    entries = inventory.kept_of_repository(repository)
    _refuse_loaded(name, [repository.path, *(each.path for each in entries)], in_use)
    whole = _plan_whole(inventory, repository.repo_id)
    if reference.gguf and not _has_gguf(repository, reference):
        raise NothingStored(f"the model {name[:100]!r} is not on this disk")
    return Deletion(whole)


def _plan_whole(inventory: Inventory, name: str) -> Removal:
    """Lists all files of a model. Raises InUse."""
    try:
        return plan_removal(inventory, [name], weights_only=False, stale=False)
    except CannotRemove as error:
        raise InUse(str(error)) from error


def _refuse_loaded(name: str, removed: Sequence[Path], in_use: Iterable[Path]) -> None:
    """Raises InUse if a loaded model lies in one of the directories to be removed."""
    roots = [form for path in removed for form in (path.absolute(), path.resolve())]
    for directory in in_use:
        for form in (directory.absolute(), directory.resolve()):
            if any(form.is_relative_to(root) for root in roots):
                raise InUse(f"{name} is loaded; unload it first: POST /v1/models/unload")


def _find_repository(inventory: Inventory, reference: HubReference) -> HubRepository | None:
    for repository in inventory.repositories:
        if repository.path.name == reference.folder_name:
            return repository
    return None


def _has_gguf(repository: HubRepository, reference: HubReference) -> bool:
    """Tells whether the GGUF model is here, or nothing but an unfinished download."""
    return not repository.snapshots or any(
        reference.find_gguf_files(each.directory) for each in repository.snapshots
    )


def _plan_gguf(
    inventory: Inventory, repository: HubRepository, reference: HubReference
) -> Deletion | None:
    """Returns None if the model is not here, or is the only one of the repository."""
    files = [
        file for each in repository.snapshots for file in reference.find_gguf_files(each.directory)
    ]
    others = [path for path in _list_weights(repository) if path not in files]
    if not files or not others:
        return None
    used_by_others = {path.resolve() for path in others}
    # a link may lead out of the cache: such a file stays
    own_blobs = (repository.path / "blobs").resolve()
    blobs = {path.resolve() for path in files} - used_by_others - set(files)
    blobs = {path for path in blobs if path.parent == own_blobs}
    kept = inventory.list_entries(files)
    for entry in kept:
        if entry.is_in_use:
            raise InUse(f"{entry.short_id} ({entry.path.name}) is in use by a running server")
    return Deletion(Removal((), tuple(kept)), (*files, *sorted(blobs)))


def _list_weights(repository: HubRepository) -> list[Path]:
    """Returns the files of weights in all snapshots, of split GGUF models too; no mmproj files,
    which go with the last model.
    """
    suffixes = (".gguf", ".safetensors", ".bin")
    return [
        path
        for snapshot in repository.snapshots
        for path in sorted(snapshot.directory.rglob("*"))
        if path.suffix.lower() in suffixes and not is_projector(path)
    ]
