"""Skips a check of cached weights that they have passed, while nothing has changed since.

Each check has a file in the cache entry, `self_check.json` or `row_check.json`. The file has the
facts at the time of the check: the weights (size and time of their file and index), the processor,
the settings, and Ouzel's own code. The entry's name already stands for the versions of openvino and
ouzel, and for the checkpoint with its config.json.
"""

import functools
import hashlib
import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.entry_check import (
    INDEX_FILE,
    WEIGHTS_FILE,
    identity,
    write_whole,
)
from ouzel.config import EngineConfig
from ouzel.machine.instructions import instructions
from ouzel.types.engine_info import EngineInfo

SELF_CHECK_FILE = "self_check.json"
ROW_CHECK_FILE = "row_check.json"
SETTINGS = ("device", "precision", "kv_cache_dtype", "num_threads")
# Variables with these prefixes may choose other kernels.
LIBRARY_VARIABLES = ("DNNL_", "ONEDNN_", "OPENVINO_", "OUZEL_KERNELS_", "OV_", "TBB_")

Facts = dict[str, str]


def check_once(entry: Path | None, file_name: str, facts: Facts, check: Callable[[], None]) -> bool:
    """Runs the check unless the entry has its file with the same facts; returns whether it ran.

    Without an entry nothing is stored.
    """
    if entry is None:
        check()
        return True
    path = entry / file_name
    if has_passed(path, facts):
        return False
    check()
    # in a read-only cache nothing is stored, and the check runs at every start
    with suppress(OSError):
        write_whole(path, facts)
    return True


def has_passed(path: Path, facts: Facts) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")) == facts)
    except (OSError, ValueError):
        return False


def list_check_facts(core: ov.Core, engine: EngineConfig, entry: Path, max_model_len: int) -> Facts:
    """Returns the facts on which the self-check depends. Raises OSError if the entry is gone."""
    library = {
        name: value for name, value in os.environ.items() if name.startswith(LIBRARY_VARIABLES)
    }
    return {
        "weights": str([identity(entry / name) for name in (WEIGHTS_FILE, INDEX_FILE)]),
        "processor": digest(
            [*device_facts(core, engine.device), platform.machine(), instructions()]
        ),
        "settings": str([getattr(engine, name) for name in SETTINGS]),
        "max_model_len": str(max_model_len),
        "library": digest([f"{name}={value}" for name, value in sorted(library.items())]),
        "code": digest_code(),
    }


def list_row_check_facts(facts: Facts, info: EngineInfo, num_threads: int) -> Facts:
    """Adds the facts of the row check: the sizes of steps, and the number of threads."""
    sizes = (info.block_size, info.max_num_seqs, info.max_num_batched_tokens)
    return facts | {"rows": str([info.precision, info.kv_cache_dtype, *sizes, num_threads])}


def device_facts(core: ov.Core, device: str) -> list[str]:
    return [
        str(core.get_property(device, name))
        for name in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES")
    ]


@functools.cache
def digest_code() -> str:
    """Digests the path, size and time of each module of the backend, once in a process."""
    stats = [(path, path.stat()) for path in sorted(Path(__file__).parents[1].rglob("*.py"))]
    return digest([f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats])


def digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
