"""The verdict on the KV cache of a model: how far a u8 cache moves its logits, without and with
scales of the keys.

The verdict is made once, at the first load of the model with a u8 cache (cache_trial.py). It is
kept in a file:

    <entry>/kv_cache.json                         beside the weights
    <name>-ir-<digest of the path>/kv_cache.json  of a directory with OpenVINO's graphs, of which no weights are kept

With the verdict the file has the facts on which the verdict depends, and the path of such a
directory. The verdict does not depend on the options of the engine, because the trial runs in f32.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from ouzel.backends.openvino.compilation import type_name
from ouzel.backends.openvino.graph.key_scales import KeyScales
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.cache import content_key, digest
from ouzel.backends.openvino.weights.entry_check import (
    INDEX_FILE,
    WEIGHTS_FILE,
    identity,
    write_whole,
)
from ouzel.config.cache_root import cache_root

FORMAT = 2  # raise it when the trial's text, its figures or the scales change
VERDICT_FILE = "kv_cache.json"
# of u8 to f32: SmolLM2-135M has 2e-4, Gemma 3 270M 3e-4, Qwen2.5-0.5B 2e-2
LARGEST_DIVERGENCE = 1e-3
SCALED: Literal["u8 with scaled keys"] = "u8 with scaled keys"

Cache = Literal["u8", "u8 with scaled keys", "f16"]


class CacheVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Divergences are the mean KL of the next token to an f32 cache; for embeddings one minus the
    cosine.
    """

    plain: float | None  # of a u8 cache; None: there was no trial
    # of a u8 cache with scales of the keys; None: these were not needed
    scaled: float | None = None
    scales: dict[str, list[list[float]]] = {}
    overflows_f16: bool = False  # keys or values lie near the end of f16's range, or beyond

    def choose(self, *, keeps_u8: bool) -> Cache:
        """With `keeps_u8` the better of the two u8 caches is chosen."""
        if self.plain is None or self.plain <= LARGEST_DIVERGENCE or self.scaled is None:
            return "u8"
        if self.scaled <= LARGEST_DIVERGENCE or keeps_u8:
            return SCALED if self.scaled < self.plain else "u8"
        return "f16"

    def figures(self) -> str:
        if self.plain is None:
            return "without a trial"
        scaled = "" if self.scaled is None else f", u8 with scaled keys by {self.scaled:.1e}"
        return f"u8 moves the next token's distribution by a KL of {self.plain:.1e}{scaled}"

    def key_scales(self) -> KeyScales:
        return {name: np.array(scales, np.float32) for name, scales in self.scales.items()}


def cache_name(dtype: ov.Type, *, has_scales: bool) -> str:
    """Names a cache as EngineInfo does."""
    return SCALED if has_scales and dtype == ov.Type.u8 else type_name(dtype)


def verdict_path(entry: Path | None, graphs: Path | None, cache_dir: str) -> Path | None:
    """Takes a cache entry, or else a directory with graphs. Returns None where there is neither."""
    if entry is not None:
        return entry / VERDICT_FILE
    if graphs is None:
        return None
    source = graphs.resolve()
    return cache_root(cache_dir) / f"{source.name[:64]}-ir-{digest(str(source))}" / VERDICT_FILE


def facts_of_verdict(entry: Path | None, graphs: Path | None) -> str:
    """Raises OSError where files are gone."""
    if entry is not None:
        return str([FORMAT, *(identity(entry / name) for name in (WEIGHTS_FILE, INDEX_FILE))])
    files = [] if graphs is None else sorted([*graphs.glob("*.xml"), *graphs.glob("*.bin")])
    return f"{FORMAT} {content_key(files)}"


def read_verdict(path: Path, facts: str) -> CacheVerdict | None:
    """Returns None where there is no verdict, or one on other files."""
    try:
        content = json.loads(path.read_bytes())
        return (
            msgspec.convert(content["verdict"], CacheVerdict) if content["facts"] == facts else None
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_verdict(path: Path, facts: str, verdict: CacheVerdict, *, source: str = "") -> None:
    """Several servers may do so at once: each writes a whole file, and their verdicts are alike."""
    with suppress(OSError):  # with a cache that may only be read the trial is made at every start
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(
            path, {"facts": facts, "verdict": msgspec.to_builtins(verdict), "source": source}
        )
