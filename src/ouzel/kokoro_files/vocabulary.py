"""Reads the phonemes of a Kokoro model with their ids, and writes them as a tokenizer.

`vocabulary.json` has the 114 phonemes of Kokoro-82M v1.0: the key `vocab` of config.json in
hexgrad/Kokoro-82M (Apache-2.0).
"""

from importlib.resources import files
from pathlib import Path

import msgspec

from ouzel.checkpoint.model_files import JsonObject, read_json_object
from ouzel.errors import ModelLoadError

PADDING = "$"  # id 0, which stands before and after the phonemes
MAX_PHONEMES = 510  # the model reads 512 ids, the padding included
_MAX_IDS = 2**16


def read_vocabulary(root: Path) -> dict[str, int]:
    """Returns the ids of the phonemes, without the padding.

    They are in tokenizer.json, or under `vocab` in config.json, or else the ids of Kokoro-82M v1.0.
    Raises ModelLoadError if the files have others than characters with ids from 1 on.
    """
    for name in ("tokenizer.json", "config.json"):
        content = read_json_object(root / name)
        model = content.get("model") if name == "tokenizer.json" else content
        vocabulary = model.get("vocab") if isinstance(model, dict) else None
        if vocabulary is not None:
            return _check(vocabulary, root / name)
    data = files("ouzel.kokoro_files").joinpath("vocabulary.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, int])


def _check(vocabulary: object, path: Path) -> dict[str, int]:
    try:
        ids = msgspec.convert(vocabulary, dict[str, int])
    except msgspec.ValidationError as error:
        raise ModelLoadError(f"{path}: vocab: {error}") from error
    ids = {phoneme: each for phoneme, each in ids.items() if phoneme != PADDING}
    faulty = [name for name, each in ids.items() if len(name) != 1 or not 0 < each < _MAX_IDS]
    if faulty or not ids:
        raise ModelLoadError(
            f"{path}: vocab must have characters with ids from 1 to {_MAX_IDS - 1}, found "
            f"{', '.join(map(repr, faulty[:8])) or 'none'}"
        )
    return ids


def make_tokenizer(vocabulary: dict[str, int]) -> JsonObject:
    """Makes a tokenizer.json whose tokens are single characters; it drops unknown characters."""
    known = "".join(f"\\x{{{ord(phoneme):X}}}" for phoneme in vocabulary)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Replace", "pattern": {"Regex": f"[^{known}]"}, "content": ""},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "."},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {PADDING: 0, **vocabulary},
            "unk_token": PADDING,
        },
    }
