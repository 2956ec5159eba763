"""The tokenizers that GGUF calls gpt2: byte-pair encoding over bytes, which are written as characters."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.pre_tokenizers import PRE_TOKENIZERS, pre_tokenizer_json
from ouzel.gguf.vocabulary import KEY, Vocabulary, bpe_model, read_merges


def byte_level_tokenizer(metadata: Metadata, vocabulary: Vocabulary) -> tuple[JsonObject, bool]:
    """Returns tokenizer.json without its post-processor, and whether a text begins with BOS by default."""
    name = metadata.text(KEY + "pre", "default")
    pre_tokenizer = PRE_TOKENIZERS.get(name)
    if pre_tokenizer is None:
        raise ModelLoadError(
            f"{metadata.source}: tokenizer.ggml.pre {name} is not supported; "
            f"supported: {', '.join(sorted(PRE_TOKENIZERS))}"
        )
    ids = vocabulary.ids()
    model = bpe_model(ids, read_merges(metadata, ids)) | {
        "ignore_merges": pre_tokenizer.ignores_merges
    }
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": True,
        "trim_offsets": True,
        "use_regex": True,
    }
    tokenizer: JsonObject = {
        "added_tokens": vocabulary.added(),
        "normalizer": {"type": "NFC"} if pre_tokenizer.normalises else None,
        "pre_tokenizer": pre_tokenizer_json(pre_tokenizer),
        "decoder": byte_level,
        "model": model,
    }
    return tokenizer, pre_tokenizer.adds_bos
