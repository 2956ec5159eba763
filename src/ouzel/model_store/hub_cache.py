"""Reads the hub's cache: `models--owner--name` with blobs, and snapshots of links to them."""

import fcntl
from dataclasses import dataclass
from pathlib import Path

from ouzel.gguf.files import is_gguf, is_projector, model_name
from ouzel.model_store.disk import measure_size, statuses

PREFIX = "models--"
_REFS = "refs"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One revision of a repository in the cache."""

    revision: str
    directory: Path
    names: tuple[str, ...]  # branches and tags that point to the revision


@dataclass(frozen=True, slots=True)
class HubRepository:
    repo_id: str
    path: Path
    snapshots: tuple[Snapshot, ...]  # newest first
    size_bytes: int
    incomplete_bytes: int  # the part of size_bytes in unfinished downloads
    last_used: float  # seconds since 1970, if the file system records uses


def cache_directory() -> Path:
    # the module reads the environment when it is imported
    from huggingface_hub import constants  # noqa: PLC0415

    return Path(constants.HF_HUB_CACHE)


def repositories(cache: Path) -> list[HubRepository]:
    """Returns the repositories of models by name; links are left out, as they lead elsewhere."""
    if not cache.is_dir():
        return []
    paths = sorted(path for path in cache.iterdir() if path.name.startswith(PREFIX))
    return [repository(path) for path in paths if path.is_dir() and not path.is_symlink()]


def repository(path: Path) -> HubRepository:
    blobs = [*statuses(path.glob("blobs/*"))]
    return HubRepository(
        repo_id=path.name.removeprefix(PREFIX).replace("--", "/"),
        path=path,
        snapshots=snapshots(path),
        size_bytes=measure_size(path),
        incomplete_bytes=sum(blob.st_size for blob in statuses(path.glob("blobs/*.incomplete"))),
        last_used=max(
            (max(blob.st_atime, blob.st_mtime) for blob in blobs), default=path.stat().st_mtime
        ),
    )


def snapshots(path: Path) -> tuple[Snapshot, ...]:
    names: dict[str, list[str]] = {}
    for ref in sorted((path / _REFS).rglob("*")):
        if ref.is_file():
            names.setdefault(ref.read_text(errors="replace").strip(), []).append(
                str(ref.relative_to(path / _REFS))
            )
    directories = [
        each for each in (path / "snapshots").glob("*") if each.is_dir() and not each.is_symlink()
    ]
    directories.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    return tuple(Snapshot(each.name, each, tuple(names.get(each.name, ()))) for each in directories)


def gguf_models(directory: Path) -> dict[str, Path]:
    """Returns the first file of each GGUF model in a snapshot, by the model's name."""
    files = [
        path for path in sorted(directory.rglob("*")) if is_gguf(path) and not is_projector(path)
    ]
    models: dict[str, Path] = {}
    for path in files:
        models.setdefault(model_name(path), path)
    return models


def is_being_fetched(path: Path) -> bool:
    """Tells whether an Ouzel process is downloading a file of the repository."""
    for incomplete in path.glob("blobs/*.incomplete"):
        try:
            with incomplete.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            continue
    return False
