"""Lists the files that Ouzel made of models, and tells which are stale.

These are compressed weights, directories made of GGUF files, verdicts on the KV cache, and models
that Python packages carried. All are in one directory, which may hold foreign files too: links and
files with other names are ignored.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import ouzel
from ouzel.checkpoint.made_directory import SOURCE_FILE
from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.model_directory import describe
from ouzel.kokoro_files.model_directory import describe as describe_kokoro
from ouzel.model_store.catalogue.packages import NOTE_FILE
from ouzel.model_store.disk import measure_size, statuses
from ouzel.whisper_files.model_directory import describe as describe_whisper

if TYPE_CHECKING:
    from ouzel.backends.openvino.weights.entry_use import MadeOf

Kind = Literal["weights", "gguf", "whisper", "kokoro", "verdict", "pulled", "unfinished"]

_WEIGHTS = re.compile(
    r"(?P<name>.{1,64})-(?P<width>(?:auto|int8|int4|bf16|f32)[a-z0-9=,]*)"
    r"-(?P<source>[0-9a-f]{16})-(?P<content>[0-9a-f]{16})"
)
_GGUF = re.compile(r"(?P<name>.{1,64})-gguf-(?P<source>[0-9a-f]{16})")
_WHISPER = re.compile(r"(?P<name>.{1,64})-whisper-(?P<source>[0-9a-f]{16})")
_KOKORO = re.compile(r"(?P<name>.{1,64})-kokoro-(?P<source>[0-9a-f]{16})")
# directories that are made of files of other formats, and the functions that describe the files
_MADE: tuple[tuple[re.Pattern[str], Kind, Callable[[list[Path]], JsonObject]], ...] = (
    (_GGUF, "gguf", describe),
    (_WHISPER, "whisper", describe_whisper),
    (_KOKORO, "kokoro", describe_kokoro),
)
_VERDICT = re.compile(r"(?P<name>.{1,64})-ir-(?P<source>[0-9a-f]{16})")
_PULLED = re.compile(r"(?P<name>.{1,64})-pulled-[0-9a-f]{16}")
_UNFINISHED = ".unfinished-"
_UNFINISHED_FOR_S = 3600.0  # after that, an unfinished entry without changes is abandoned


@dataclass(frozen=True, slots=True)
class CacheEntry:
    path: Path
    kind: Kind
    name: str  # the directory or file that the entry was made of
    width: str  # the value of --weights, and `mtp` with a prediction layer; empty for other kinds
    source: str  # the path of the model; empty in weights of older versions
    source_key: str  # a digest of the path of the model; empty without one
    size_bytes: int
    last_used: float  # seconds since 1970
    stale: str  # the reason why no start will use the entry; empty if one may
    is_in_use: bool  # a server is using the entry

    @property
    def short_id(self) -> str:
        return hashlib.sha256(self.path.name.encode()).hexdigest()[:8]


def kept_in(root: Path) -> list[CacheEntry]:
    """Returns all entries of the cache directory, sorted by name."""
    if not root.is_dir():
        return []
    paths = [path for path in sorted(root.iterdir()) if path.is_dir() and not path.is_symlink()]
    return [kept for path in paths if (kept := read_kept(path)) is not None]


def read_kept(path: Path) -> CacheEntry | None:
    """Returns None for a file or directory that is not Ouzel's."""
    if match := _WEIGHTS.fullmatch(path.name):
        return _read_weights_entry(path, match)
    for pattern, kind, describe_source in _MADE:
        if match := pattern.fullmatch(path.name):
            return _read_made_entry(path, match, kind, describe_source)
    if match := _VERDICT.fullmatch(path.name):
        return _read_verdict_entry(path, match)
    if path.name.startswith(_UNFINISHED):
        return unfinished(path)
    match = _PULLED.fullmatch(path.name)
    return _read_pulled_entry(path, match) if match else None


def source_key(directory: Path) -> str:
    """Returns the digest in the names of all weights that were made of the directory."""
    return hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16]


def _read_weights_entry(path: Path, match: re.Match[str]) -> CacheEntry:
    from ouzel.backends.openvino.weights.entry_use import (  # noqa: PLC0415
        MADE_OF_FILE,
        is_entry_in_use,
        read_entry_source,
    )

    made_of = read_entry_source(path)
    noted = path / MADE_OF_FILE if made_of else path
    return CacheEntry(
        path=path,
        kind="weights",
        name=match["name"],
        width=match["width"],
        source=made_of.directory if made_of else "",
        source_key=match["source"],
        size_bytes=measure_size(path),
        last_used=noted.stat().st_mtime,
        stale=_explain_staleness(match["content"], made_of) if made_of else "",
        is_in_use=is_entry_in_use(path),
    )


def _explain_staleness(content: str, made_of: "MadeOf") -> str:
    from ouzel.backends.openvino.library import ov  # noqa: PLC0415
    from ouzel.backends.openvino.weights.cache import content_key  # noqa: PLC0415

    if not Path(made_of.directory).is_dir():
        return "its model is gone"
    try:
        if content == content_key([Path(file) for file in made_of.files]):
            return ""
    except OSError:
        return "files of its model are gone"
    versions = f"ouzel {made_of.ouzel}, openvino {made_of.openvino}"
    if (made_of.ouzel, made_of.openvino) != (ouzel.__version__, ov.__version__):
        return f"made by {versions}"
    return "its model has changed"


def _read_made_entry(
    path: Path, match: re.Match[str], kind: Kind, describe: Callable[[list[Path]], JsonObject]
) -> CacheEntry:
    note = path / SOURCE_FILE
    try:
        source = json.loads(note.read_bytes())
        files = [Path(name) for name, *_ in source["files"]]
        stale = "" if source == describe(files) else "its file has changed"
    except FileNotFoundError:
        files, stale = [], "its file is gone"
    except (OSError, ValueError, KeyError, TypeError):
        files, stale = [], "it is broken"
    return CacheEntry(
        path=path,
        kind=kind,
        name=match["name"],
        width="",
        source=str(files[0]) if files else "",
        source_key="",
        size_bytes=measure_size(path),
        last_used=(note if note.exists() else path).stat().st_mtime,
        stale=stale,
        is_in_use=False,
    )


def _read_verdict_entry(path: Path, match: re.Match[str]) -> CacheEntry:
    """Reads the entry of an OpenVINO IR: the cache has only the verdict on its KV cache type."""
    from ouzel.backends.openvino.cache.cache_verdict import (  # noqa: PLC0415
        VERDICT_FILE,
        list_verdict_facts,
    )

    file = path / VERDICT_FILE
    source = ""
    try:
        content = json.loads(file.read_bytes())
        source = str(content["source"])
        if not Path(source).is_dir():
            stale = "its model is gone"
        else:
            stale = (
                ""
                if content["facts"] == list_verdict_facts(None, Path(source))
                else "its model has changed"
            )
    except (OSError, ValueError, KeyError, TypeError):
        stale = "it is broken"
    return CacheEntry(
        path=path,
        kind="verdict",
        name=match["name"],
        width="",
        source=source,
        source_key=match["source"],
        size_bytes=measure_size(path),
        last_used=(file if file.exists() else path).stat().st_mtime,
        stale=stale,
        is_in_use=False,
    )


def _read_pulled_entry(path: Path, match: re.Match[str]) -> CacheEntry:
    """Reads the entry of a model that Python packages carried; its name is the short name."""
    note, name, stale = path / NOTE_FILE, match["name"], ""
    try:
        name = str(json.loads(note.read_bytes())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        stale = "it is broken"
    return CacheEntry(
        path=path,
        kind="pulled",
        name=name,
        width="",
        source="",
        source_key="",
        size_bytes=measure_size(path),
        last_used=(note if note.exists() else path).stat().st_mtime,
        stale=stale,
        is_in_use=False,
    )


def unfinished(path: Path) -> CacheEntry:
    changed = max(
        (status.st_mtime for status in statuses(path.rglob("*"))), default=path.stat().st_mtime
    )
    is_recent = time.time() - changed < _UNFINISHED_FOR_S
    return CacheEntry(
        path=path,
        kind="unfinished",
        name=path.name.removeprefix(_UNFINISHED),
        width="",
        source="",
        source_key="",
        size_bytes=measure_size(path),
        last_used=changed,
        stale="" if is_recent else "it was never finished",
        is_in_use=is_recent,
    )
