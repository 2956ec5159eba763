"""Reads facts about a model that is not in memory from its small files."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ouzel.api.endpoint.on_demand import FilesOfModel
from ouzel.checkpoint.context_length import read_max_positions
from ouzel.checkpoint.declared_task import is_encoder_type, suggest_task
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.checkpoint.model_facts import read_model_facts
from ouzel.checkpoint.model_files import read_chat_templates
from ouzel.config.model import TaskOption
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import AUTO, find_gguf, is_gguf
from ouzel.kokoro_files.files import KokoroFiles, find_kokoro
from ouzel.kokoro_files.model_directory import MODEL_TYPE
from ouzel.kokoro_files.vocabulary import MAX_PHONEMES
from ouzel.pooling import Task

if TYPE_CHECKING:
    from ouzel.gguf.metadata import Metadata

_RANKS = 4  # the pooling of rerankers in llama.cpp
_SCORING_HEAD = "cls.output.weight"


def read_files_of_model(path: Path, task: TaskOption) -> FilesOfModel:
    """Reads a model directory or a GGUF file; facts that the files do not tell are None."""
    try:
        created = int(path.stat().st_mtime)
    except OSError:
        return FilesOfModel(created=0)
    known_task: Task | None = None if task == "auto" else task
    try:
        if is_gguf(path):
            return _read_gguf(path, created, known_task)
        if (kokoro := find_kokoro(path)) is not None:
            return _describe_kokoro(kokoro, created)
        config = read_hf_config(path)
        return FilesOfModel(
            created=created,
            num_bytes=read_model_facts(path).num_bytes,
            max_model_len=read_max_positions(config),
            task=known_task or suggest_task(path, config),
            model_type=config.model_type,
            has_chat_template=bool(read_chat_templates(path)),
            has_vision=config.section("vision_config") is not None,
        )
    except (ModelLoadError, OSError, ValueError):
        return FilesOfModel(created=created, task=known_task)


def _describe_kokoro(found: KokoroFiles, created: int) -> FilesOfModel:
    return FilesOfModel(
        created=created,
        num_bytes=sum(each.stat().st_size for each in (found.graph, *found.graph_parts)),
        max_model_len=MAX_PHONEMES,
        task="speak",
        model_type=MODEL_TYPE,
    )


def _read_gguf(path: Path, created: int, task: Task | None) -> FilesOfModel:
    """Reads the header of a GGUF file, which takes some tenths of a second."""
    from ouzel.gguf.file import read_gguf, read_header  # noqa: PLC0415  imports numpy
    from ouzel.gguf.projector_choice import choose_projector  # noqa: PLC0415

    files = find_gguf(path)
    metadata, tensors = read_header(files[0])
    architecture = metadata.text("general.architecture", "")
    context_key = f"{architecture}.context_length"
    projector = choose_projector(AUTO, files[0], lambda: read_gguf(files))
    return FilesOfModel(
        created=created,
        num_bytes=sum(file.stat().st_size for file in files),
        max_model_len=metadata.integer(context_key) if metadata.has(context_key) else None,
        task=task or _suggest_task(metadata, tensors),
        model_type=architecture,
        has_chat_template=metadata.has("tokenizer.chat_template"),
        has_vision=projector is not None,
    )


def _suggest_task(metadata: "Metadata", tensors: Collection[str]) -> Task:
    """Returns the task by the head and the pooling in a GGUF file, else by its architecture."""
    architecture = metadata.text("general.architecture", "")
    pooling = metadata.integer(f"{architecture}.pooling_type", 0)
    if pooling == _RANKS or _SCORING_HEAD in tensors:
        return "score"
    return "embed" if pooling or is_encoder_type(architecture) else "generate"
