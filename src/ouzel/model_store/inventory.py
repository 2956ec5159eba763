"""Finds the model from which each entry of Ouzel's cache directory was made.

An entry holds compressed weights, a directory made of a GGUF file, or a verdict on the KV cache.
The model is a repository of the hub cache, a demo, or a directory elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ouzel.model_store.hub_cache import HubRepository
from ouzel.model_store.kept import CacheEntry, source_key


@dataclass(frozen=True, slots=True)
class Inventory:
    repositories: tuple[HubRepository, ...]
    kept: tuple[CacheEntry, ...]
    demos: Mapping[str, Path]  # directories by name

    @property
    def pulled(self) -> list[CacheEntry]:
        """Returns the models that Python packages carried; their names are short names."""
        return [each for each in self.kept if each.kind == "pulled"]

    def list_made_of_pulled(self, pulled: CacheEntry) -> list[CacheEntry]:
        """Returns the entries made of a model that Python packages carried."""
        return self.list_entries([pulled.path, *pulled.path.glob("*.gguf")])

    def kept_of_repository(self, repository: HubRepository) -> list[CacheEntry]:
        directories = [repository.path.absolute(), repository.path.resolve()]
        within = [each.source for each in self.kept if _is_within(each.source, directories)]
        return self.list_entries(
            [*map(Path, within), *(snapshot.directory for snapshot in repository.snapshots)]
        )

    def list_entries(self, paths: Iterable[Path]) -> list[CacheEntry]:
        """Returns the entries made of these directories or files, directly or in several steps."""
        sources = {str(form) for path in paths for form in (path.absolute(), path.resolve())}
        keys = {source_key(Path(source)) for source in sources}
        direct = [each for each in self.kept if each.source in sources or each.source_key in keys]
        made = [each.path for each in direct if each.kind in ("gguf", "whisper", "kokoro")]
        if not made:
            return direct
        return direct + [each for each in self.list_entries(made) if each not in direct]

    def name_model(self, kept: CacheEntry) -> str:
        """Returns the name of the model that an entry was made of, as far as the entry tells."""
        for repository in self.repositories:
            if kept in self.kept_of_repository(repository):
                return repository.repo_id
        for name, directory in self.demos.items():
            if kept in self.list_entries([directory]):
                return name
        for pulled in self.pulled:
            if kept in self.list_made_of_pulled(pulled):
                return pulled.name
        return kept.source or f"{kept.name} (its path is unknown)"


def _is_within(source: str, directories: Iterable[Path]) -> bool:
    return bool(source) and any(Path(source).is_relative_to(directory) for directory in directories)
