"""Reads `--source_loras` of OpenVINO Model Server as `--lora`.

The value is a list, like `alias=org/repo,other=/path/adapter_model.safetensors`. An adapter of the
hub is in the model's directory of the repository, where `--pull` and a start download it.
"""

from dataclasses import dataclass
from pathlib import Path

from ouzel.checkpoint.weight_files import ADAPTER_WEIGHTS
from ouzel.options.invalid_option import InvalidOption

_FLAG = "--source_loras"


@dataclass(frozen=True, slots=True)
class SourceLora:
    alias: str
    directory: Path
    repo_id: str = ""  # owner/name at the hub; empty for a local directory

    @property
    def is_missing(self) -> bool:
        return bool(self.repo_id) and not (self.directory / ADAPTER_WEIGHTS).is_file()


def read_source_loras(text: str, model_directory: Path | None) -> tuple[SourceLora, ...]:
    """Reads the adapters; hub adapters need the directory of the model in the repository.

    `model_directory` is None without a repository. Raises InvalidOption.
    """
    return tuple(
        _read(entry.strip(), model_directory) for entry in text.split(",") if entry.strip()
    )


def _read(entry: str, model_directory: Path | None) -> SourceLora:
    alias, _, source = entry.partition("=")
    if not (alias and source):
        raise InvalidOption(f"{_FLAG}: each entry must be alias=source, given {entry!r}")
    if source.startswith("@"):
        raise InvalidOption(
            f"{_FLAG}: a blend of adapters is not supported, only one, given {entry!r}"
        )
    if source.startswith(("http://", "https://")):
        raise InvalidOption(
            f"{_FLAG}: must be a repository of the hub or a local adapter, given {entry!r}"
        )
    source = _without_alpha(source, entry)
    if source.startswith(("/", "./", "../", "~")):
        return SourceLora(alias, _local_directory(Path(source).expanduser(), entry))
    repo_id, _, file = source.partition("@")
    if file not in ("", ADAPTER_WEIGHTS):
        raise InvalidOption(
            f"{_FLAG}: the file of an adapter must be PEFT's {ADAPTER_WEIGHTS}, given {entry!r}"
        )
    if repo_id.count("/") != 1 or ".." in repo_id:
        raise InvalidOption(f"{_FLAG}: a repository must be owner/name, given {entry!r}")
    if model_directory is None:
        raise InvalidOption(
            f"{_FLAG}: an adapter of the hub needs --model_repository_path, given {entry!r}"
        )
    return SourceLora(alias, model_directory / "loras" / repo_id, repo_id)


def _without_alpha(source: str, entry: str) -> str:
    """Drops the weight 1, the only supported one. Raises InvalidOption for another weight."""
    start, colon, end = source.rpartition(":")
    try:
        alpha = float(end) if colon else None
    except ValueError:
        return source
    if alpha not in (None, 1.0):
        raise InvalidOption(
            f"{_FLAG}: the weight must be 1; lora_alpha is in the adapter's files, given {entry!r}"
        )
    return start if alpha is not None else source


def _local_directory(path: Path, entry: str) -> Path:
    if path.is_dir():
        return path
    if path.name != ADAPTER_WEIGHTS:
        raise InvalidOption(
            f"{_FLAG}: must be a PEFT directory, or {ADAPTER_WEIGHTS} in it, given {entry!r}"
        )
    return path.parent
