"""A check that kept weights have passed is not made again while all that the check depends on stays
as it was.

Each check has a file in the cache entry, `self_check.json` or `row_check.json`, with the facts that
held: which weights (what the system says of their file and index), which processor, which settings,
and which code of ours. The versions of openvino and ouzel, and the checkpoint with its config.json,
are in the entry's name already.
"""

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
LIBRARY_VARIABLES = (
    "DNNL_",
    "ONEDNN_",
    "OPENVINO_",
    "OV_",
    "TBB_",
)  # they may choose other kernels

Facts = dict[str, str]


def check_once(entry: Path | None, file_name: str, facts: Facts, check: Callable[[], None]) -> bool:
    """Makes the check unless the entry says that it was passed; returns whether it was made now.

    Without an entry nothing is kept.
    """
    if entry is None:
        check()
        return True
    path = entry / file_name
    if has_passed(path, facts):
        return False
    check()
    with suppress(OSError):  # with a cache that may only be read the check is made at every start
        write_whole(path, facts)
    return True


def has_passed(path: Path, facts: Facts) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")) == facts)
    except (OSError, ValueError):
        return False


def facts_of_check(core: ov.Core, engine: EngineConfig, entry: Path, max_model_len: int) -> Facts:
    """Raises OSError where the entry is gone."""
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
        "code": digest(code_facts()),
    }


def facts_of_row_check(facts: Facts, info: EngineInfo, num_threads: int) -> Facts:
    """Adds to the facts of the self-check the sizes of steps, and the threads that the model has
    got.
    """
    sizes = (info.block_size, info.max_num_seqs, info.max_num_batched_tokens)
    return facts | {"rows": str([info.precision, info.kv_cache_dtype, *sizes, num_threads])}


def device_facts(core: ov.Core, device: str) -> list[str]:
    return [
        str(core.get_property(device, name))
        for name in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES")
    ]


def code_facts() -> list[str]:
    """Says of each module of this package whether it was changed, as whoever works on them does."""
    stats = [(path, path.stat()) for path in sorted(Path(__file__).parents[1].rglob("*.py"))]
    return [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]


def digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
