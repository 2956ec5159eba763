"""Makes tokenizer.json, tokenizer_config.json and generation_config.json from a GGUF file's
tokenizer.

`tokenizer.ggml.model` is one of gpt2 (byte-pair encoding over bytes), llama (SentencePiece: pieces
with scores over characters, and bytes for the rest), gemma4 (pieces with merges), bert (WordPiece)
and t5 (pieces with probabilities). Keys and token types are from llama.cpp's package gguf,
constants.py.
"""

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.byte_level import make_byte_level_tokenizer
from ouzel.gguf.metadata import Metadata
from ouzel.gguf.post_processor import TextEnds, make_post_processor
from ouzel.gguf.sentencepiece import make_sentencepiece_tokenizer
from ouzel.gguf.unigram import make_unigram_tokenizer
from ouzel.gguf.vocabulary import CONTROL, KEY, USER_DEFINED, Vocabulary, read_vocabulary, token_id
from ouzel.gguf.wordpiece import make_wordpiece_tokenizer

# A file names one end of a turn. Models also end turns with these (llama.cpp, llama-vocab.cpp:
# special_eog_ids).
_ENDS = (
    *("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>"),
    *("<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<end_of_utterance>", "<turn|>"),
    "<|tool_response>",
)
# If the second token exists, the first ends a message, not the turn.
_ENDS_OF_MESSAGES_ONLY = {"<|end|>": "<|return|>"}


def make_tokenizer_files(metadata: Metadata) -> dict[str, JsonObject]:
    """Returns the contents of the three files by file name. Raises ModelLoadError."""
    vocabulary = read_vocabulary(metadata)
    tokenizer, text_ends = _make_tokenizer(metadata, vocabulary)
    tokenizer["post_processor"] = make_post_processor(metadata, vocabulary, text_ends)
    ends = find_end_ids(metadata, vocabulary)
    return {
        "tokenizer.json": {"version": "1.0", "truncation": None, "padding": None} | tokenizer,
        "tokenizer_config.json": make_tokenizer_config(metadata, vocabulary),
        "generation_config.json": {"eos_token_id": ends} if ends else {},
    }


def _make_tokenizer(metadata: Metadata, vocabulary: Vocabulary) -> tuple[JsonObject, TextEnds]:
    """Makes tokenizer.json without its post-processor. Raises ModelLoadError."""
    match metadata.text(KEY + "model"):
        case "gpt2":
            return make_byte_level_tokenizer(metadata, vocabulary)
        case "llama":
            return make_sentencepiece_tokenizer(metadata, vocabulary), TextEnds(adds_bos=True)
        case "gemma4":
            tokenizer = make_sentencepiece_tokenizer(metadata, vocabulary, has_merges=True)
            return tokenizer, TextEnds(adds_bos=True)
        case "bert":
            ends = TextEnds(adds_bos=True, adds_eos=True, pair_form="bert")
            return make_wordpiece_tokenizer(metadata, vocabulary), ends
        case "t5":
            ends = TextEnds(adds_bos=False, adds_eos=True, pair_form="roberta")
            return make_unigram_tokenizer(metadata, vocabulary), ends
        case kind:
            raise ModelLoadError(
                f"{metadata.source}: tokenizer.ggml.model {kind} is not supported; "
                "supported: bert, gemma4, gpt2, llama, t5"
            )


def find_end_ids(metadata: Metadata, vocabulary: Vocabulary) -> list[int]:
    named = [token_id(metadata, vocabulary, name) for name in ("eos", "eot", "eom")]
    # Marks for chat parsers are user-defined tokens in files of Gemma 4.
    kinds = (CONTROL, USER_DEFINED)
    tokens = zip(vocabulary.tokens, vocabulary.types, strict=True)
    control = {token: id_ for id_, (token, kind) in enumerate(tokens) if kind in kinds}
    known = [
        control[end]
        for end in _ENDS
        if end in control and _ENDS_OF_MESSAGES_ONLY.get(end) not in control
    ]
    return list(dict.fromkeys([id_ for id_ in named if id_ is not None] + known))


def make_tokenizer_config(metadata: Metadata, vocabulary: Vocabulary) -> JsonObject:
    config: JsonObject = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
    }
    for ours, theirs in {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}.items():
        id_ = token_id(metadata, vocabulary, theirs)
        if id_ is not None:
            config[f"{ours}_token"] = vocabulary.tokens[id_]
    if templates := list_chat_templates(metadata):
        config["chat_template"] = templates
    return config


def list_chat_templates(metadata: Metadata) -> str | list[JsonObject] | None:
    main: str | None = None
    if metadata.has("tokenizer.chat_template"):
        main = metadata.text("tokenizer.chat_template")
    if not metadata.has("tokenizer.chat_templates"):
        return main
    named = {
        name: metadata.text(f"tokenizer.chat_template.{name}")
        for name in metadata.texts("tokenizer.chat_templates")
    }
    every = ({} if main is None else {"default": main}) | named
    return [{"name": name, "template": text} for name, text in every.items()]
