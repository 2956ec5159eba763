"""Makes tokenizers that GGUF calls gpt2: byte-pair encoding on bytes written as characters."""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.post_processor import TextEnds
from ouzel.gguf.pre_tokenizers import PRE_TOKENIZERS, make_pre_tokenizer
from ouzel.gguf.vocabulary import KEY, Vocabulary, make_bpe_model, read_merges


def make_byte_level_tokenizer(
    metadata: Metadata, vocabulary: Vocabulary
) -> tuple[JsonObject, TextEnds]:
    """Makes tokenizer.json without its post-processor; returns it with the tokens around a text."""
    name = metadata.text(KEY + "pre", "default")
    pre_tokenizer = PRE_TOKENIZERS.get(name)
    if pre_tokenizer is None:
        raise ModelLoadError(
            f"{metadata.source}: tokenizer.ggml.pre {name} is not supported; "
            f"supported: {', '.join(sorted(PRE_TOKENIZERS))}"
        )
    ids = vocabulary.ids()
    model = make_bpe_model(ids, read_merges(metadata, ids)) | {
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
        "pre_tokenizer": make_pre_tokenizer(pre_tokenizer),
        "decoder": byte_level,
        "model": model,
    }
    ends = TextEnds(adds_bos=pre_tokenizer.adds_bos, pair_form=pre_tokenizer.pair_form)
    return tokenizer, ends
