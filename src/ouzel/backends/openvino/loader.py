"""A checkpoint directory becomes a graph, by way of the cache when it can be."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import Build, family
from ouzel.backends.openvino.weights.cache import CachedWeights, EntryWriter, entry_path
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.safetensors import Checkpoint, find_files
from ouzel.backends.openvino.weights.source import CheckpointWeights, MemoryWriter
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)


def load_checkpoint(directory: Path, config: HfConfig, encoding: Encoding, cache_dir: str) -> LanguageModel:
    build = family(config.model_type)
    refuse_quantized(config)
    files = [directory / "config.json", *find_files(directory)]
    entry = entry_path(cache_dir, directory, files, encoding)
    if (cached := load_cached(entry, config, build, encoding)) is not None:
        return replace(cached, cache_entry=entry)
    logger.info("compressing the weights of %s to %s; the next start takes them from %s", directory, encoding, entry)
    checkpoint = Checkpoint(directory)
    try:
        compress(checkpoint, entry, config, build, encoding)
        cached = load_cached(entry, config, build, encoding)
    except OSError as error:
        logger.warning("compressed weights cannot be kept in %s: %s", entry.parent, error)
    return cached or build(config, CheckpointWeights(checkpoint, MemoryWriter()), encoding)


def refuse_quantized(config: HfConfig) -> None:
    quantization = config.section("quantization_config")
    if quantization is not None:
        method = quantization.text("quant_method", "of unknown kind")
        raise ModelLoadError(
            f"config.json: quantization_config {method} is not supported; "
            "take the unquantised checkpoint, which is compressed while loading (--weights int8 or int4)"
        )


def load_cached(entry: Path, config: HfConfig, build: Build, encoding: Encoding) -> LanguageModel | None:
    """Returns None where there is no entry, or it was broken and is gone."""
    if not entry.exists():
        return None
    try:
        weights = CachedWeights(entry)
        return replace(build(config, weights, encoding), mapping=weights.mapping)
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("cache entry %s is broken (%r) and will be made again", entry, error)
        shutil.rmtree(entry, ignore_errors=True)
        return None


def compress(checkpoint: Checkpoint, entry: Path, config: HfConfig, build: Build, encoding: Encoding) -> None:
    """Makes the cache entry: building the graph is what asks for each weight once."""
    with EntryWriter(entry) as writer:
        weights = CheckpointWeights(checkpoint, writer)
        build(config, weights, encoding)
        writer.commit(weights.index)
