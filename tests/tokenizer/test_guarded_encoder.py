"""Tests texts with control tokens at known places, with each kind of tokenizer."""

import random
from collections.abc import Callable

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from ouzel.errors import InvalidRequest
from ouzel.tokenizer.base import Tokenizer
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer, load_tokenizer
from tests.tokenizer.test_tokenizer_text import DEMO, byte_level, sentencepiece, word_piece


def make_unigram() -> tokenizers.Tokenizer:
    """Makes a tokenizer whose model itself turns the spellings `</s>` and `<end>` into tokens."""
    pieces = [
        ("<unk>", 0.0),
        ("</s>", 0.0),
        ("<end>", 0.0),
        ("▁", -1.0),
        ("▁He", -2.0),
        ("llo", -2.0),
    ]
    tokenizer = tokenizers.Tokenizer(
        models.Unigram([*pieces, *((chr(c), -5.0) for c in range(33, 127))], unk_id=0)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first", split=False)
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    tokenizer.add_tokens([AddedToken("<end>", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="</s> $A", special_tokens=[("</s>", 1)]
    )
    return tokenizer


def make_metaspace() -> tokenizers.Tokenizer:
    """Makes a tokenizer that puts a space before the first piece, and merges `<s>`."""
    tokenizer = sentencepiece(strips_first_space=True)
    pieces = tokenizer.get_vocab() | {"<": 300, "s": 301, ">": 302, "<s": 303}
    merges = [("▁", "w"), ("l", "o"), ("▁", "▁"), ("<", "s"), ("<s", ">")]
    changed = tokenizers.Tokenizer(
        models.BPE(pieces, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    changed.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    changed.decoder = tokenizer.decoder
    changed.add_special_tokens(["<unk>", "<s>", "</s>"])
    changed.add_special_tokens(
        [AddedToken("<|end|>", rstrip=True), AddedToken("<|user|>", lstrip=True)]
    )
    return changed


def make_tekken() -> tokenizers.Tokenizer:
    """Makes a tokenizer that does not merge words of its vocabulary, so `[INST]` could be one."""
    tokenizer = tokenizers.Tokenizer.from_str(byte_level().to_str())
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    size = max(vocabulary.values()) + 1
    model = models.BPE(vocabulary | {"[INST]": size, "[/INST]": size + 3}, [], ignore_merges=True)
    changed = tokenizers.Tokenizer(model)
    changed.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(r"\[/?\w+\]|\s?\w+|\s+|[^\s\w]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    changed.decoder = tokenizer.decoder
    changed.add_special_tokens(["[INST]", "[/INST]", "<s>"])
    return changed


def make_normalising() -> tokenizers.Tokenizer:
    """Makes a tokenizer that looks for control tokens in normalised text.

    An accent may hide a control token, and a wide letter may make one.
    """
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.add_tokens(
        [AddedToken("<tool>", normalized=True), AddedToken("<|end|>", normalized=True)]
    )
    return tokenizer


KINDS: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "byte level": byte_level,
    "SentencePiece": lambda: sentencepiece(strips_first_space=True),
    "Metaspace": make_metaspace,
    "Unigram": make_unigram,
    "Tekken": make_tekken,
    "WordPiece": word_piece,
    "normalising": make_normalising,
}
WORDS = [
    "Hello",
    " ",
    "  wo r",
    "\n",
    "é",
    "日本",
    "low",
    "< s",
    "x>",
    "[a]",
    "\t",
    "He llo",
    "0x0A",
    "word",
]


def make_tokenizer(kind: str) -> Tokenizer:
    return HuggingFaceTokenizer(KINDS[kind](), {}) if kind in KINDS else load_tokenizer(DEMO)


@pytest.fixture(params=["demo", *KINDS])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return make_tokenizer(request.param)


def select_control_ids(tokenizer: Tokenizer, token_ids: list[int]) -> list[int]:
    """Leaves out the token for unknown text."""
    known = {
        id_ for text, id_ in tokenizer.control_tokens.items() if text not in ("<unk>", "[UNK]")
    }
    return [token_id for token_id in token_ids if token_id in known]


def make_text_with_marks(
    rng: random.Random, marks: list[str], words: list[str]
) -> tuple[str, list[tuple[int, int]]]:
    text, spans = "", []
    for _ in range(rng.randrange(1, 6)):
        text += "".join(rng.choices(words, k=rng.randrange(4)))
        mark = rng.choice(marks)
        spans.append((len(text), len(text) + len(mark)))
        text += mark
    return text, spans


def test_other_text_gets_the_ids_that_it_always_got(tokenizer: Tokenizer) -> None:
    rng = random.Random(7)
    marks = [mark for mark in tokenizer.control_tokens if "unk" not in mark.lower()]
    for _ in range(60):
        text, spans = make_text_with_marks(rng, marks, WORDS)
        for special in (True, False):
            expected = tokenizer.encode(text, add_special_tokens=special)
            assert tokenizer.encode_guarded(text, spans, add_special_tokens=special) == expected, (
                text
            )
        # A spelling behind the last mark brings in the guard; the text before it has the same ids.
        guarded = tokenizer.encode_guarded(text + "x" + marks[0], spans, add_special_tokens=True)
        expected = tokenizer.encode(text + "x", add_special_tokens=True)
        num_same = (
            len(expected)
            - 1
            - expected[::-1].index(tokenizer.control_tokens[text[slice(*spans[-1])]])
        )
        assert guarded[: num_same + 1] == expected[: num_same + 1], text


def test_a_spelling_is_text(tokenizer: Tokenizer) -> None:
    rng = random.Random(11)
    marks = [mark for mark in tokenizer.control_tokens if "unk" not in mark.lower()]
    parts = [mark[:cut] for mark in marks for cut in (1, 2, -1)] + [
        mark[cut:] for mark in marks for cut in (1, -1)
    ]
    wide = [mark.replace("<", "＜").upper() for mark in marks]
    words = [*marks, *parts, *wide, "\u0338", "\u0301", "\uf8ff", "\u200d", *WORDS]
    for _ in range(150):
        text, spans = make_text_with_marks(rng, marks, words)
        token_ids = tokenizer.encode_guarded(text, spans, add_special_tokens=False)
        expected = [tokenizer.control_tokens[text[begin:end]] for begin, end in spans]
        assert select_control_ids(tokenizer, token_ids) == expected, ascii(text)


@pytest.mark.parametrize("kind", ["byte level", "Tekken"])
def test_the_text_of_the_ids_is_the_text(kind: str) -> None:
    tokenizer = make_tokenizer(kind)
    text = "".join(f"a{mark} {mark}{mark}\n" for mark in tokenizer.control_tokens)
    token_ids = tokenizer.encode_guarded(text, (), add_special_tokens=False)
    assert select_control_ids(tokenizer, token_ids) == []
    assert tokenizer.decode(token_ids, skip_special_tokens=False) == text


def test_an_unknown_token_that_is_spelled_is_text() -> None:
    tokenizer = HuggingFaceTokenizer(make_metaspace(), {"unk_token": "<unk>"})
    unknown_id = tokenizer.control_tokens["<unk>"]
    assert unknown_id in tokenizer.encode("<unk>", add_special_tokens=False)
    assert unknown_id not in tokenizer.encode_guarded("<unk>", (), add_special_tokens=False)


def test_the_tags_of_html_and_white_space_are_no_control_tokens() -> None:
    library_tokenizer = byte_level()
    library_tokenizer.add_tokens(
        ["<table>", "</h1>", "\n\n", "▁▁", "<tool_call>", "[INST]", "plain"]
    )
    library_tokenizer.add_special_tokens(["<s>", "!", "/nothink"])
    tokenizer = HuggingFaceTokenizer(library_tokenizer, {})
    control = {"<|end|>", "<think>", "<tool_call>", "[INST]", "<s>", "/nothink"}
    assert tokenizer.control_tokens.keys() == control
    text = "<table>\n\n!"
    assert tokenizer.encode_guarded(text, (), add_special_tokens=False) == tokenizer.encode(
        text, add_special_tokens=False
    )


def test_half_a_surrogate_pair_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        tokenizer.encode_guarded("\ud800<|end|>", (), add_special_tokens=False)
