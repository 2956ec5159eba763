from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())

NEED_KERNELS = ("gemma2", "paligemma2")  # their attention has a soft cap

# A golden checkpoint of each kind of graph.
KINDS = [
    "llama-bias",
    "qwen3",
    "gpt-oss",
    "qwen3_5",
    "granitemoehybrid",
    "deepseek-v2",
    "gemma4-shared",
]


def of_kinds(
    subject: str, names: Sequence[str] = GOLDEN_NAMES, kinds: Sequence[str] = KINDS
) -> list[Any]:
    """Returns a parameter for each name; `uv run pytest` runs only the names in `kinds`.

    `subject` is the reason for which the others are left to a release.
    """
    return [
        pytest.param(name, marks=[] if name in kinds else pytest.mark.release(subject))
        for name in names
    ]
