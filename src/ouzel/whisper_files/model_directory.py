"""Makes a model directory from a Whisper model of CTranslate2 or whisper.cpp: a link to the file,
and the small files of a Hugging Face repository.

The directory is stored and reused. It is made again if the file, or a small file beside it, has
another path, size or time of change, or if FORMAT has changed.
"""

import hashlib
import logging
from pathlib import Path

from ouzel.checkpoint.made_directory import SmallFile, mark_used, matches_source, store_directory
from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.whisper_files.alignment_heads import find_alignment_heads
from ouzel.whisper_files.ctranslate2_config import read_added_tokens, read_ctranslate2_config
from ouzel.whisper_files.ctranslate2_file import read_ctranslate2
from ouzel.whisper_files.ctranslate2_names import rename_ctranslate2
from ouzel.whisper_files.files import find_whisper_file, is_ggml, name_whisper_file
from ouzel.whisper_files.ggml_file import read_ggml
from ouzel.whisper_files.ggml_names import rename_ggml
from ouzel.whisper_files.small_files import (
    Suppression,
    make_config,
    make_generation_config,
    make_preprocessor_config,
    make_tokenizer_config,
)
from ouzel.whisper_files.special_tokens import count_special_tokens, find_special_tokens
from ouzel.whisper_files.tokenizer import find_unspoken_ids, make_tokenizer

logger = logging.getLogger(__name__)

FORMAT = 1  # increase it when other files are made from the same model
_CONFIG, _TOKENIZER = "config.json", "tokenizer.json"


def make_whisper_directory(path: Path, cache_root: Path) -> Path:
    """Returns the directory for a file, or for a directory with one. Raises ModelLoadError."""
    found = find_whisper_file(path)
    if found is None:
        raise ModelLoadError(f"{path} has no Whisper model of CTranslate2 or whisper.cpp")
    file = found.absolute()
    has_own_tokens = is_ggml(file)
    files = [file] if has_own_tokens else [file, *_list_small_files(file.parent)]
    source = describe(files)
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:16]
    directory = cache_root / f"{name_whisper_file(file)[:64]}-whisper-{digest}"
    if matches_source(directory, source):
        mark_used(directory)
        return directory
    links = {each.name: each for each in files if each.name != _CONFIG}
    contents = _read_ggml_files(file) if has_own_tokens else _read_ctranslate2_files(file)
    try:
        store_directory(directory, contents, links, source)
    except OSError as error:
        raise ModelLoadError(
            f"{file}: its small files cannot be stored in {cache_root} (--cache-dir): {error}"
        ) from error
    logger.info("tokenizer and configuration of %s are in %s", file, directory)
    return directory


def _list_small_files(directory: Path) -> list[Path]:
    return [directory / name for name in (_CONFIG, _TOKENIZER) if (directory / name).is_file()]


def describe(files: list[Path]) -> JsonObject:
    facts = [(file, file.stat()) for file in files]
    return {
        "format": FORMAT,
        "files": [[str(file), each.st_size, each.st_mtime_ns] for file, each in facts],
    }


def _read_ctranslate2_files(file: Path) -> dict[str, SmallFile]:
    """Reads the sizes from the tensors, and the tokens from the files beside them."""
    read = read_ctranslate2(file)
    tensors = rename_ctranslate2(read.tensors)
    embedding = tensors.get("model.decoder.embed_tokens.weight")
    tokenizer_file = file.parent / _TOKENIZER
    if not tokenizer_file.is_file():
        raise ModelLoadError(f"{file.parent} must have {_TOKENIZER} beside {file.name}")
    special = find_special_tokens(
        read_added_tokens(tokenizer_file),
        0 if embedding is None else embedding.shape[0],
        tokenizer_file,
    )
    heads = tuple(read.integers.get(f"{side}/num_heads", 0) for side in ("encoder", "decoder"))
    config = make_config(tensors, special, (heads[0], heads[1]), file)
    theirs = read_ctranslate2_config(file.parent / _CONFIG)
    suppressed = Suppression(theirs.suppress_ids, theirs.suppress_ids_begin)
    max_length = tensors["model.decoder.embed_positions.weight"].shape[0]
    generation = make_generation_config(special, suppressed, theirs.alignment_heads, max_length)
    return _join_small_files(config, generation)


def _read_ggml_files(file: Path) -> dict[str, SmallFile]:
    """Reads sizes and tokens from the file; the number of tokens tells the special ones."""
    read = read_ggml(file)
    special = count_special_tokens(read.sizes.vocab_size, file)
    tokens = read.tokens[: special.end]
    if len(tokens) < special.end:
        raise ModelLoadError(f"{file} must have {special.end} tokens of texts, found {len(tokens)}")
    heads = (read.sizes.encoder_heads, read.sizes.decoder_heads)
    config = make_config(rename_ggml(read.tensors), special, heads, file)
    made_tokenizer = make_tokenizer(tokens, special, file)
    at_begin = [tokens.index(b" "), special.end]
    suppressed = Suppression(find_unspoken_ids(tokens, special), at_begin)
    sizes = read.sizes
    aligned = find_alignment_heads(sizes.vocab_size, sizes.decoder_layers, sizes.decoder_width)
    generation = make_generation_config(special, suppressed, aligned, sizes.max_target_positions)
    return _join_small_files(config, generation) | {_TOKENIZER: made_tokenizer}


def _join_small_files(config: JsonObject, generation: JsonObject) -> dict[str, SmallFile]:
    return {
        _CONFIG: config,
        "generation_config.json": generation,
        "preprocessor_config.json": make_preprocessor_config(config["num_mel_bins"]),
        "tokenizer_config.json": make_tokenizer_config(),
    }
