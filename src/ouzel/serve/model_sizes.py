"""Finds the sizes of models, and keeps them on disk: a measurement takes a second or two."""

import asyncio
import hashlib
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

import ouzel
from ouzel.config.cache_root import cache_root
from ouzel.errors import ModelLoadError
from ouzel.serve.measuring import Answer, ModelSize, Question
from ouzel.serve.open_models import CheckedModel

logger = logging.getLogger(__name__)

DIRECTORY = "sizes"  # below the directory of compressed weights


async def find_size(model: CheckedModel) -> ModelSize:
    """Returns the sizes of a model, from the disk or by a measurement. Raises ModelLoadError."""
    local = model.local
    question = Question(local.put_paths_into(model.settings.model), model.settings.engine)
    directories = [each for each in (local.directory, local.draft) if each is not None]
    path = await asyncio.to_thread(_find_path, question, directories)
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(await asyncio.to_thread(path.read_bytes), type=ModelSize)
    size = await _measure(question)
    await asyncio.to_thread(_keep, path, size)
    return size


async def _measure(question: Question) -> ModelSize:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ouzel.serve.measuring"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        written, _ = await process.communicate(msgspec.json.encode(question))
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise ModelLoadError(
            "the memory of the model could not be measured: the process ended with status "
            f"{process.returncode}"
        )
    answer = msgspec.json.decode(written, type=Answer)
    if answer.size is None:
        raise ModelLoadError(answer.fault)
    return answer.size


def _find_path(question: Question, directories: Sequence[Path]) -> Path:
    """Returns the file that keeps the size. Its name changes with the options and the files."""
    digest = hashlib.sha256(ouzel.__version__.encode() + msgspec.json.encode(question))
    for path in chain.from_iterable(sorted(each.iterdir()) for each in directories):
        stat = path.stat() if path.exists() else None
        if stat is not None:
            digest.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    name = f"{digest.hexdigest()[:32]}.json"
    return cache_root(question.model.cache_dir) / DIRECTORY / name


def _keep(path: Path, size: ModelSize) -> None:
    """Writes the size; a disk that takes no more costs a measurement at the next load only."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(msgspec.json.encode(size))
        unfinished.replace(path)
    except OSError as error:
        logger.warning("the size of a model is not kept: %s", error)
