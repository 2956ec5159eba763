"""Provides engines that store their prefix cache in a directory.

A restart is a new engine with empty caches on the same directory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.cache.prefix_store import PrefixStore, open_prefix_store
from ouzel.engine.cache.record_files import RecordFiles
from ouzel.engine.core import EngineCore
from ouzel.types.engine_info import EngineStats
from tests.engine.requests import make_request, run_alone

BLOCK = 4
RECORD_BYTES = 32 + 8 * BLOCK
PROMPT = [(7 * i) % 89 for i in range(37)]
STATES = {"num_kept_states": 8}


@contextmanager
def open_engine(
    directory: Path,
    *,
    max_bytes: int = 2**20,
    **options: Any,  # options of FakeRunner
) -> Iterator[EngineCore]:
    """Opens an engine on the directory; at the end the engine writes all pending records."""
    runner = FakeRunner(**options)
    engine = EngineCore(
        runner, store=open_prefix_store(runner, str(directory), max_bytes=max_bytes)
    )
    yield engine
    engine.close()


def answer(engine: EngineCore, prompt: list[int] = PROMPT, **params: Any) -> tuple[int, list[int]]:
    """Returns the number of cached tokens, and the output."""
    [result] = run_alone(engine, make_request(prompt, **params))
    return result.final.num_cached_tokens, result.token_ids


def answer_without_store(prompt: list[int] = PROMPT, **params: Any) -> list[int]:
    return answer(EngineCore(FakeRunner(), prefix_caching=False), prompt, **params)[1]


def serve_once(
    directory: Path, *prompts: list[int], max_bytes: int = 2**20, **options: Any
) -> EngineStats:
    with open_engine(directory, max_bytes=max_bytes, **options) as engine:
        for prompt in prompts:
            answer(engine, prompt)
    return engine.stats()


def records(directory: Path, ending: str = "*") -> list[Path]:
    return sorted(directory.glob(f"*/*.{ending}"))


def damage(path: Path, offset: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def num_stored(engine: EngineCore) -> int:
    """Counts the records that the store has written or let go."""
    stats = engine.stats()
    return stats.num_store_written + stats.num_store_skipped


@contextmanager
def open_slow_engine(directory: Path, **options: Any) -> Iterator[EngineCore]:
    """Opens an engine that loads one block in a step."""
    runner = FakeRunner(**options)
    sizes = {ending: rows.row_bytes for ending, rows in runner.cache_rows.items()}
    files = RecordFiles(directory, runner.info.cache_identity, sizes, max_bytes=2**20)
    engine = EngineCore(runner, store=PrefixStore(files, runner.cache_rows, max_loaded_bytes=1))
    yield engine
    engine.close()
