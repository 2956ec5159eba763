from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())

# One of each kind of graph.
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
    what: str, names: Sequence[str] = GOLDEN_NAMES, kinds: Sequence[str] = KINDS
) -> list[Any]:
    """Returns parameters for a test: one of each kind has `what`, which others leave to a release."""
    return [
        pytest.param(name, marks=[] if name in kinds else pytest.mark.release(what))
        for name in names
    ]
