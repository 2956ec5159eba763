"""Downloads a model into OpenVINO Model Server's repository and writes its graph, for `--pull`.

A start with `--source_model` and `--model_repository_path` does the same if the model is missing.
`--configure` writes the graph of a local model.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ouzel.errors import ModelLoadError
from ouzel.gguf.files import find_gguf
from ouzel.model_store.snapshot_copy import copy_file, copy_snapshot
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_graph import GRAPH_FILE, read_graph
from ouzel.options.profiles.ovms_graph_text import (
    Flags,
    embeddings_graph_text,
    llm_graph_text,
    rerank_graph_text,
)
from ouzel.options.profiles.ovms_loras import SourceLora
from ouzel.options.profiles.ovms_meanings import TASKS
from ouzel.terminal.clean_end import clean_end

_HERE = "./"  # the model is beside its graph


@dataclass(frozen=True, slots=True)
class Pull:
    """A download: the model, its directory in the repository, and flags of its graph."""

    source: str  # owner/name
    directory: Path
    flags: Flags  # flags with OpenVINO Model Server's names
    gguf: str = ""  # the only file to download, if it is a GGUF file
    draft: str = ""  # owner/name, or a local directory
    loras: Sequence[SourceLora] = ()
    is_overwriting: bool = False


def pull_model(pull: Pull) -> None:
    """Downloads the model and writes its graph. Raises ModelLoadError and InvalidOption."""
    with _writing():
        if pull.gguf:
            _pull_gguf(pull)
        else:
            _pull_directory(pull.source, pull.directory, is_overwriting=pull.is_overwriting)
        _say(f"Model: {pull.source} downloaded to: {pull.directory}")
        draft_path = _pull_draft(pull) if pull.draft else ""
    pull_adapters(pull.loras, is_overwriting=pull.is_overwriting)
    write_graph(pull.directory, pull.flags, name=pull.source, gguf=pull.gguf, draft_path=draft_path)


def pull_adapters(loras: Sequence[SourceLora], *, is_overwriting: bool) -> None:
    """Downloads the adapters. Raises ModelLoadError and InvalidOption."""
    with _writing():
        _pull_adapters(loras, is_overwriting=is_overwriting)


def _pull_adapters(loras: Sequence[SourceLora], *, is_overwriting: bool) -> None:
    for lora in loras:
        if not lora.repo_id:
            _say(f"LoRA adapter: {lora.alias} using local file: {lora.directory}")
        elif not lora.is_missing and not is_overwriting:
            _say(f"LoRA adapter: {lora.alias} already exists, skipping download.")
        else:
            from ouzel.model_store.hub import ADAPTER_FILES, download_adapter  # noqa: PLC0415

            copy_snapshot(download_adapter(lora.repo_id), ADAPTER_FILES, lora.directory)
            _say(f"LoRA adapter: {lora.alias} downloaded to: {lora.directory}")


@contextmanager
def _writing() -> Iterator[None]:
    """Removes unfinished files if a signal ends the block.

    Raises InvalidOption if the files cannot be written.
    """
    try:
        with clean_end():
            yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise InvalidOption(f"--model_repository_path: {place}{error.strerror or error}") from error


def write_graph(
    directory: Path, flags: Flags, *, name: str, gguf: str = "", draft_path: str = ""
) -> None:
    """Writes the graph of a model. Raises InvalidOption for flags that do not fit in a graph."""
    path, beside = directory / GRAPH_FILE, directory / f".{GRAPH_FILE}.{os.getpid()}"
    try:
        beside.write_text(
            _graph_text(directory, flags, name=name, gguf=gguf, draft_path=draft_path),
            encoding="utf-8",
        )
        read_graph(beside)
        beside.replace(path)
    except OSError as error:
        raise InvalidOption(f"{path}: the file cannot be written: {error.strerror}") from error
    except InvalidOption as error:
        raise InvalidOption(str(error).replace(beside.name, path.name)) from error
    finally:
        beside.unlink(missing_ok=True)
    _say(f"Graph: {GRAPH_FILE} created in: {directory}")


def _graph_text(directory: Path, flags: Flags, *, name: str, gguf: str, draft_path: str) -> str:
    task = TASKS[flags["task"]] if "task" in flags else _task_of_files(directory, gguf)
    models_path = _HERE + gguf if gguf else _HERE
    if task == "embed":
        return embeddings_graph_text(
            flags, name=flags.get("model_name", name), models_path=models_path
        )
    if task == "score":
        return rerank_graph_text(flags, name=flags.get("model_name", name), models_path=models_path)
    if task in ("transcribe", "speak"):
        spelled = "speech2text" if task == "transcribe" else "text2speech"
        raise InvalidOption(
            f"--task: no graph can be written for {spelled}; --source_model serves such a model"
        )
    return llm_graph_text(flags, models_path=models_path, draft_models_path=draft_path)


def _task_of_files(directory: Path, gguf: str) -> str:
    """Returns the task by the model's files. Raises ModelLoadError if they do not tell."""
    if gguf or not (directory / "config.json").is_file():
        return "generate"
    from ouzel.backends.openvino.task import find_task  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415

    return find_task(read_hf_config(directory), directory, "auto")


def _pull_directory(source: str, directory: Path, *, is_overwriting: bool) -> None:
    if directory.is_dir() and not is_overwriting:
        _say(f"Path already exists on local filesystem. Skipping download to path: {directory}")
        return
    from ouzel.model_store.hub import MODEL_FILES, TORCH_WEIGHTS, download  # noqa: PLC0415

    snapshot = download(source)
    if not (snapshot / "config.json").is_file():
        raise ModelLoadError(f"{source} holds no supported model: it has no config.json")
    copy_snapshot(snapshot, [*MODEL_FILES, *TORCH_WEIGHTS], directory)


def _pull_gguf(pull: Pull) -> None:
    if (pull.directory / pull.gguf).is_file() and not pull.is_overwriting:
        _say(
            f"Path already exists on local filesystem. Skipping download to path: {pull.directory}"
        )
        return
    from ouzel.model_store.hub import download_gguf_file  # noqa: PLC0415

    for path in find_gguf(download_gguf_file(pull.source, pull.gguf)):
        copy_file(path, pull.directory / Path(pull.gguf).with_name(path.name))


def _pull_draft(pull: Pull) -> str:
    """Downloads the draft model, unless it is local; returns its path for the graph."""
    local = Path(pull.draft).expanduser()
    if local.is_dir():
        return str(local.resolve())
    name = draft_directory_name(pull.draft)
    _pull_directory(pull.draft, pull.directory / name, is_overwriting=pull.is_overwriting)
    _say(f"Draft model: {name} downloaded to: {pull.directory / name}")
    return name


def draft_directory_name(draft: str) -> str:
    """Returns OVMS's name for the directory of a draft model in its model's directory."""
    return draft.replace("/", "-")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
