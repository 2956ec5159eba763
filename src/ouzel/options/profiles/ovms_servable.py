"""Reads a servable of OpenVINO Model Server: a directory with a graph, a model or its versions."""

from pathlib import Path

from ouzel.gguf.files import holds_gguf
from ouzel.model_store.model_directory import IR_FILES
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_graph import GRAPH_FILE, NotALanguageModel, read_graph
from ouzel.options.profiles.ovms_meanings import Settings

_WEIGHTS = (*IR_FILES, "model.safetensors", "model.safetensors.index.json")


def read_servable(directory: Path, graph_path: Path | None = None) -> Settings:
    """Returns the options of the model in the directory, `model` included.

    Raises InvalidOption, and NotALanguageModel for servables that Ouzel does not serve.
    """
    graph = graph_path or directory / GRAPH_FILE
    if graph_path is not None or graph.is_file():
        return read_graph(graph)
    if not directory.is_dir():
        raise InvalidOption(f"must be a directory, given {directory}")
    for candidate in (directory, *_versions(directory)):
        if holds_language_model(candidate):
            return Settings({"model": str(candidate)})
    raise NotALanguageModel(f"{directory} has no {GRAPH_FILE}, and no config.json beside weights")


def servable_names(repository: Path) -> list[str]:
    """Returns the paths of the directories below a repository that OVMS could serve."""
    found = {path.parent for path in repository.rglob(GRAPH_FILE)}
    versions = (path for path in repository.rglob("*") if path.name.isdecimal() and path.is_dir())
    found |= {path.parent for path in versions if any(path.iterdir())}
    # A directory below a servable holds the files of its graph.
    inner = {path for path in found if any(parent in found for parent in path.parents)}
    return sorted(str(path.relative_to(repository)) for path in found - inner - {repository})


def holds_language_model(directory: Path) -> bool:
    if (directory / "config.json").is_file():
        return any((directory / name).is_file() for name in _WEIGHTS) or holds_gguf(directory)
    return holds_gguf(directory)


def _versions(directory: Path) -> list[Path]:
    """Returns the numbered version directories, the newest first."""
    numbered = [path for path in directory.iterdir() if path.name.isdecimal() and path.is_dir()]
    return sorted(numbered, key=lambda path: int(path.name), reverse=True)
