"""Compares tokenizers made of GGUF metadata with their originals.

`training/golden/make_gguf_tokenizers.py` made the metadata.
"""

import json
import re
import struct
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from ouzel.demo import MODEL_DIRECTORY
from ouzel.errors import ModelLoadError
from ouzel.gguf.file import read_gguf
from ouzel.gguf.metadata import Metadata, Value
from ouzel.gguf.pre_tokenizers import PRE_TOKENIZERS, make_pre_tokenizer
from ouzel.gguf.tokenizer import make_tokenizer_files
from ouzel.gguf.vocabulary import CONTROL, UNKNOWN
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer, load_tokenizer

GOLDEN = Path(__file__).parent / "golden" / "tokenizers"
SENTENCEPIECE = ("with_space", "with_symbols")


def write_tokenizer(metadata: Metadata, directory: Path) -> Path:
    for name, content in make_tokenizer_files(metadata).items():
        (directory / name).write_text(json.dumps(content))
    return directory


def load_golden_tokenizer(name: str, directory: Path) -> HuggingFaceTokenizer:
    return load_tokenizer(write_tokenizer(read_gguf([GOLDEN / f"{name}.gguf"]).metadata, directory))


def golden_ids(name: str) -> dict[str, list[int]]:
    ids: dict[str, list[int]] = json.loads((GOLDEN / f"{name}.json").read_text())
    return ids


def test_byte_pairs_equal_the_originals(tmp_path: Path) -> None:
    ours, original = load_golden_tokenizer("demo", tmp_path), load_tokenizer(MODEL_DIRECTORY)
    for text in golden_ids("with_space"):
        token_ids = original.encode(text, add_special_tokens=True)
        assert ours.encode(text, add_special_tokens=True) == token_ids
        for skips in (True, False):
            assert ours.decode(token_ids, skip_special_tokens=skips) == original.decode(
                token_ids, skip_special_tokens=skips
            )
    assert ours.control_tokens == original.control_tokens
    assert ours.special_token_ids == original.special_token_ids
    assert ours.eos_token_ids[0] == original.eos_token_ids[0]
    assert ours.vocab_size == original.vocab_size


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_pieces_equal_sentencepieces(name: str, tmp_path: Path) -> None:
    ours = load_golden_tokenizer(name, tmp_path)
    bos = ours.token_id("<s>")
    for text, token_ids in golden_ids(name).items():
        if "<s>" in text or "<end_of_turn>" in text:
            continue  # SentencePiece itself reads no control tokens in a text
        assert ours.encode(text, add_special_tokens=True) == [bos, *token_ids]
        assert ours.decode(token_ids, skip_special_tokens=True) == text


def test_pieces_with_probabilities_equal_sentencepieces(tmp_path: Path) -> None:
    ours = load_golden_tokenizer("unigram", tmp_path)
    bos, eos = ours.token_id("<s>"), ours.token_id("</s>")
    for text, token_ids in golden_ids("unigram").items():
        if "<s>" in text:
            continue  # SentencePiece itself reads no control tokens in a text
        assert ours.encode(text, add_special_tokens=True) == [bos, *token_ids, eos]
    pair = ours.encode_pair("the", "the", max_tokens=None)
    [the] = ours.encode("the", add_special_tokens=False)
    assert pair[0] == [bos, the, eos, eos, the, eos]


@pytest.mark.parametrize(
    "table",
    [
        b"",
        b"\4\0\0\0",  # it ends before its array
        struct.pack("<II", 4, 0xFFF << 10) + b"a\0",  # the offset leads out of the array
        struct.pack("<I", 1024) + struct.pack("<I", 1 << 8) * 256 + b"a",  # no zero byte
        struct.pack("<I", 1024) + struct.pack("<I", 1 << 8) * 256 + b"a\0",  # a far replacement
    ],
)
def test_a_table_of_characters_that_leads_out_of_itself_is_refused(table: bytes) -> None:
    good = read_gguf([GOLDEN / "unigram.gguf"]).metadata
    scores = good.numbers("tokenizer.ggml.scores", len(good.texts("tokenizer.ggml.tokens")))
    values: dict[str, Value] = {
        "model": "t5",
        "tokens": good.texts("tokenizer.ggml.tokens"),
        "scores": np.array(scores),
        "unknown_token_id": 3,
        "precompiled_charsmap": np.frombuffer(table, np.uint8),
    }
    metadata = Metadata({f"tokenizer.ggml.{key}": value for key, value in values.items()}, "file")
    with pytest.raises(ModelLoadError, match="precompiled_charsmap must be SentencePiece's table"):
        make_tokenizer_files(metadata)


def test_merges_of_the_file_are_as_good_as_scores(tmp_path: Path) -> None:
    """The metadata of gemma4 have merges instead of scores, and no type for the unknown token."""
    scored = read_gguf([GOLDEN / "with_symbols.gguf"]).metadata
    merges: list[list[str]] = json.loads(json.dumps(make_tokenizer_files(scored)))[
        "tokenizer.json"
    ]["model"]["merges"]
    types = scored.integers("tokenizer.ggml.token_type", len(scored.texts("tokenizer.ggml.tokens")))
    unknown = types.index(UNKNOWN)
    types[unknown] = CONTROL
    values: dict[str, Value] = {
        "model": "gemma4",
        "tokens": scored.texts("tokenizer.ggml.tokens"),
        "token_type": np.array(types),
        "merges": [" ".join(merge) for merge in merges if " " not in "".join(merge)],
        "unknown_token_id": unknown,
        "add_space_prefix": False,
        "add_bos_token": True,
        "bos_token_id": scored.integer("tokenizer.ggml.bos_token_id"),
        "eos_token_id": scored.integer("tokenizer.ggml.eos_token_id"),
    }
    merged = Metadata(
        {f"tokenizer.ggml.{key}": value for key, value in values.items()}, "model.gguf"
    )
    directories = [tmp_path / "scored", tmp_path / "merged"]
    for directory in directories:
        directory.mkdir()
    theirs = load_tokenizer(write_tokenizer(scored, directories[0]))
    ours = load_tokenizer(write_tokenizer(merged, directories[1]))
    for text in golden_ids("with_symbols"):
        token_ids = theirs.encode(text, add_special_tokens=True)
        assert ours.encode(text, add_special_tokens=True) == token_ids
        assert ours.decode(token_ids, skip_special_tokens=True) == theirs.decode(
            token_ids, skip_special_tokens=True
        )


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_control_tokens_are_found_in_a_text(name: str, tmp_path: Path) -> None:
    ours = load_golden_tokenizer(name, tmp_path)
    token_ids = ours.encode("hi<end_of_turn>", add_special_tokens=False)
    assert token_ids[-1] == ours.token_id("<end_of_turn>") in ours.eos_token_ids
    assert ours.decode(token_ids, skip_special_tokens=True) == "hi"


@pytest.mark.parametrize("name", sorted(PRE_TOKENIZERS))
def test_every_pre_tokenizer_keeps_the_text(name: str) -> None:
    original = json.loads((MODEL_DIRECTORY / "tokenizer.json").read_text())["model"]
    content = make_tokenizer_files(
        byte_level(original["vocab"], original["merges"], {"pre": name})
    )["tokenizer.json"]
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    for text in golden_ids("with_space"):
        expected = unicodedata.normalize("NFC", text) if PRE_TOKENIZERS[name].normalises else text
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == expected


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt-2", "it's 1234  x", ["it", "'s", " 1234", " ", " x"]),
        ("bloom", "Hello, (x) 12", ["Hello", ", (", "x", ")", " 12"]),
        ("smollm", "it's 1234  x", ["it", "'s", " ", "1", "2", "3", "4", " ", " x"]),
        ("llama-bpe", "it'S 1234  x/y", ["it", "'S", " ", "123", "4", " ", " x", "/y"]),
        ("qwen2", "it'S 12  x/y", ["it", "'S", " ", "1", "2", " ", " x", "/y"]),
        ("qwen35", "हिन्दी x", ["हिन्दी", " x"]),
        ("gpt-4o", "camelCase'S 1234 //\n", ["camel", "Case'S", " ", "123", "4", " //\n"]),
        ("tekken", "camelCase 12", ["camel", "Case", " ", "1", "2"]),
        ("deepseek-v3", "你好 x=1234", ["你好", " x", "=", "123", "4"]),
        ("glm4", "it'S 1234", ["it", "'S", " ", "123", "4"]),
        ("jais-2", "a     b", ["a", "    ", " b"]),
        ("minicpm5", "x12345", ["x", "123", "45"]),
        ("deepseek-coder", "a b12\n", ["a", " b", "1", "2", "\n"]),
        ("default", "a,b 12345", ["a", ",", "b", " ", "123", "45"]),
    ],
)
def test_texts_are_cut_by_the_named_rule(name: str, text: str, pieces: list[str]) -> None:
    content = json.dumps(make_pre_tokenizer(PRE_TOKENIZERS[name]) | {"type": "Sequence"})
    tokenizer = tokenizers.Tokenizer.from_str(
        json.dumps(
            {
                "model": {"type": "BPE", "vocab": {}, "merges": []},
                "pre_tokenizer": json.loads(content),
            }
        )
    )
    assert tokenizer.pre_tokenizer is not None
    cut = [text[begin:end] for _, (begin, end) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    assert cut == pieces


def test_pairs_of_modernbert_have_one_mark_between_them() -> None:
    content = make_tokenizer_files(
        byte_level({"[CLS]": 0, "[SEP]": 1, "a": 2, "b": 3}, [], {"pre": "modern-bert"})
    )["tokenizer.json"]
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    assert tokenizer.encode("a", "b").ids == [0, 2, 1, 3, 1]
    assert tokenizer.encode("ab").ids == [0, 2, 3, 1]


def byte_level(
    vocab: dict[str, int], merges: list[list[str]], further: dict[str, Value]
) -> Metadata:
    values: dict[str, Value] = {
        "model": "gpt2",
        "tokens": sorted(vocab, key=lambda token: vocab[token]),
        "merges": [" ".join(merge) for merge in merges],
    }
    return Metadata(
        {f"tokenizer.ggml.{key}": value for key, value in (values | further).items()}, "model.gguf"
    )


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (
            {"model": "rwkv"},
            "tokenizer.ggml.model rwkv is not supported; supported: bert, gemma4",
        ),
        (
            {"pre": "unheard-of"},
            "tokenizer.ggml.pre unheard-of is not supported; supported: a.x-4.0, bloom, chatglm",
        ),
        ({"tokens": ["a", "b", "a"]}, 'tokens must differ and not be empty, found "a" at 2'),
        ({"tokens": ["a", ""]}, 'tokens must differ and not be empty, found "" at 1'),
        ({"tokens": []}, "tokens must name tokens, but none is in use"),
        ({"merges": ["a c"]}, 'merges must merge tokens, found "a c"'),
        ({"merges": ["ab"]}, 'merges must merge tokens, found "ab"'),
        ({"merges": 1}, "merges must be a list of strings, found 1"),
        ({"eos_token_id": 3}, "eos_token_id must be < 3, the number of tokens, found 3"),
        ({"add_bos_token": "yes"}, 'add_bos_token must be true or false, found "yes"'),
        ({"token_type": np.array([1])}, "token_type must be a list of 3 integers"),
        (
            {"model": "llama", "scores": np.zeros(2), "tokens": ["a", "ab" * 600]},
            f'tokens must have <= 1024 characters, found "{"ab" * 39}a… of 1200',
        ),
        ({"model": "llama", "scores": np.array([0.0])}, "scores must be a list of 3 numbers"),
    ],
)
def test_impossible_metadata_are_refused_by_name(further: dict[str, Value], message: str) -> None:
    with pytest.raises(ModelLoadError, match=re.escape(message)):
        make_tokenizer_files(byte_level({"a": 0, "b": 1, "ab": 2}, [["a", "b"]], further))


def test_pieces_that_merge_in_too_many_ways_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = ["a" * count for count in range(1, 9)]  # 28 pairs of tokens make another token
    further: dict[str, Value] = {"model": "llama", "tokens": tokens, "scores": np.zeros(8)}
    monkeypatch.setattr("ouzel.gguf.sentencepiece.MAX_MERGES", 28)
    assert make_tokenizer_files(byte_level({}, [], further))
    monkeypatch.setattr("ouzel.gguf.sentencepiece.MAX_MERGES", 27)
    with pytest.raises(ModelLoadError, match="can be merged in more than 27 ways"):
        make_tokenizer_files(byte_level({}, [], further))


def test_chat_templates_of_several_names_stay_apart() -> None:
    templates: dict[str, Value] = {
        "tokenizer.chat_template": "one",
        "tokenizer.chat_templates": ["tool_use"],
        "tokenizer.chat_template.tool_use": "two",
    }
    tokenizer: dict[str, Value] = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a"]}
    metadata = Metadata({**tokenizer, "tokenizer.ggml.merges": [], **templates}, "model.gguf")
    assert make_tokenizer_files(metadata)["tokenizer_config.json"]["chat_template"] == [
        {"name": "default", "template": "one"},
        {"name": "tool_use", "template": "two"},
    ]
