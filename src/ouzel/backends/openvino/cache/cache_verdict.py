"""Stores the verdict on the KV cache of a model: how far a u8 cache moves its logits.

The verdict has two figures: for a plain u8 cache and for one with scaled keys. It is made once, at
the first load of the model with a u8 cache (cache_trial.py), and stored in a file.

- With a cache entry for the weights: `<entry>/kv_cache.json`.
- For a directory with OpenVINO's graphs (no weights in the cache): `<name>-ir-<digest of the
  path>/kv_cache.json`.

The file has the verdict, the facts on which it depends, and the path of a directory with graphs.
The verdict does not depend on the options of the engine, because the trial runs in f32.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from ouzel.backends.openvino.compilation import type_name
from ouzel.backends.openvino.graph.key_scales import KeyScales
from ouzel.backends.openvino.kernels.attention import OWN_NAMES
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.tables import Table
from ouzel.backends.openvino.weights.cache import content_key, digest
from ouzel.backends.openvino.weights.entry_check import (
    INDEX_FILE,
    WEIGHTS_FILE,
    identity,
    write_whole,
)
from ouzel.config.cache_root import cache_root

FORMAT = 2  # increase it if the trial's text, its figures or the scales change
VERDICT_FILE = "kv_cache.json"
# Largest KL of u8 to f32 that is accepted: SmolLM2-135M has 2e-4, Gemma 3 270M 3e-4, Qwen2.5-0.5B
# 2e-2.
LARGEST_DIVERGENCE = 1e-3
SCALED: Literal["u8 with scaled keys"] = "u8 with scaled keys"

Cache = Literal["u8", "u8 with scaled keys", "f16"]


class CacheVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trial.

    A divergence is the mean KL of the next token's distribution to an f32 cache; for a model that
    makes vectors it is one minus the cosine.
    """

    plain: float | None  # divergence of a plain u8 cache; None: there was no trial
    # divergence of a u8 cache with scaled keys; None: the scales were not needed
    scaled: float | None = None
    scales: dict[str, list[list[float]]] = {}
    overflows_f16: bool = False  # keys or values come near the end of f16's range, or exceed it
    attends: bool = False  # the u8 cache of the kernels was judged, not the runtime's

    def choose(self, *, keeps_u8: bool) -> Cache:
        """Returns the cache with the verdict; with `keeps_u8` the better of the two u8 caches."""
        if self.plain is None or self.plain <= LARGEST_DIVERGENCE or self.scaled is None:
            return "u8"
        if self.scaled <= LARGEST_DIVERGENCE or keeps_u8:
            return SCALED if self.scaled < self.plain else "u8"
        return "f16"

    def figures(self) -> str:
        """Describes the figures for the log."""
        if self.plain is None:
            return "without a trial"
        scaled = "" if self.scaled is None else f", u8 with scaled keys by {self.scaled:.1e}"
        return f"u8 moves the next token's distribution by a KL of {self.plain:.1e}{scaled}"

    def key_scales(self) -> KeyScales:
        return {name: np.array(scales, np.float32) for name, scales in self.scales.items()}


def cache_name(tables: Sequence[Table], *, has_scales: bool) -> str:
    """Returns the name of a cache as in EngineInfo; `none` if there are no tables."""
    if not tables:
        return "none"
    dtype = tables[0].dtype
    if dtype in OWN_NAMES:
        return OWN_NAMES[dtype]
    return SCALED if has_scales and dtype == ov.Type.u8 else type_name(dtype)


def verdict_path(entry: Path | None, graphs: Path | None, cache_dir: str) -> Path | None:
    """Returns the path of the verdict on a cache entry, or else on a directory with graphs.

    Returns None if both are None.
    """
    if entry is not None:
        return entry / VERDICT_FILE
    if graphs is None:
        return None
    source = graphs.resolve()
    return cache_root(cache_dir) / f"{source.name[:64]}-ir-{digest(str(source))}" / VERDICT_FILE


def list_verdict_facts(entry: Path | None, graphs: Path | None) -> str:
    """Returns the identity of the files on which the verdict depends, the weights or the graphs.

    Raises OSError if files are missing.
    """
    if entry is not None:
        return str([FORMAT, *(identity(entry / name) for name in (WEIGHTS_FILE, INDEX_FILE))])
    files = [] if graphs is None else sorted([*graphs.glob("*.xml"), *graphs.glob("*.bin")])
    return f"{FORMAT} {content_key(files)}"


def read_verdict(path: Path, facts: str) -> CacheVerdict | None:
    """Returns the stored verdict, None if there is none or it was made from other files."""
    try:
        content = json.loads(path.read_bytes())
        return (
            msgspec.convert(content["verdict"], CacheVerdict) if content["facts"] == facts else None
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_verdict(path: Path, facts: str, verdict: CacheVerdict, *, source: str = "") -> None:
    """Writes the verdict to its file.

    Several servers may write at once: each writes a whole file, and their verdicts are alike.
    """
    # in a read-only cache nothing is stored, and the trial runs at every start
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(
            path, {"facts": facts, "verdict": msgspec.to_builtins(verdict), "source": source}
        )
