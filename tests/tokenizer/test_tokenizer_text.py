"""Tests the way from ids to text with each kind of tokenizer.

Ids are decoded whole, piece by piece, and one at a time.
"""

import json
import random
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

import ouzel.demo
from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.tokenizer.base import Detokenizer, Tokenizer
from ouzel.tokenizer.huggingface import load_tokenizer

TEXTS = (
    "Hello world, how are you?",
    " two  spaces, a\ttab\nand lines\n\n",
    "naïve café – “quotes”",
    "日本語の文章と中文",
    "emoji 🙂 family 👩‍👩‍👧 flag 🇫🇮",
    "العربية हिन्दी",
)
DEMO = Path(ouzel.demo.__file__).parent / "model"


def byte_level() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_tokens([AddedToken("<think>"), AddedToken("two words"), AddedToken("日本")])
    return tokenizer


def sentencepiece(*, strips_first_space: bool) -> tokenizers.Tokenizer:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += ["▁", "H", "e", "l", "o", "w", "r", "d", "日", "é", "▁w", "lo", "▁▁"]
    merges = [("▁", "w"), ("l", "o"), ("▁", "▁")]
    vocabulary = {piece: token_id for token_id, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    steps: list[decoders.Decoder] = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
    ]
    tokenizer.decoder = decoders.Sequence(
        steps + ([decoders.Strip(" ", 1, 0)] if strips_first_space else [])
    )
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer


def word_piece() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]", "[SEP]"])
    )
    return tokenizer


def metaspace() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=["<unk>", "</s>"], unk_token="<unk>"
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


KINDS: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "byte level": byte_level,
    "sentencepiece": lambda: sentencepiece(strips_first_space=True),
    "sentencepiece, no strip": lambda: sentencepiece(strips_first_space=False),
    "word piece": word_piece,
    "metaspace": metaspace,
    "demo": lambda: tokenizers.Tokenizer.from_file(str(DEMO / "tokenizer.json")),
}


@pytest.fixture(params=KINDS)
def library(request: pytest.FixtureRequest) -> tokenizers.Tokenizer:
    """Makes an object of the `tokenizers` library, as the reference."""
    return KINDS[request.param]()


@pytest.fixture
def tokenizer(library: tokenizers.Tokenizer, tmp_path: Path) -> Tokenizer:
    return save_and_load(library, tmp_path)


def save_and_load(library: tokenizers.Tokenizer, directory: Path) -> Tokenizer:
    library.save(str(directory / "tokenizer.json"))
    return load_tokenizer(directory)


def random_pieces(token_ids: list[int], chance: random.Random) -> Iterator[list[int]]:
    start = 0
    while start < len(token_ids):
        end = start + chance.randint(0, 4)
        yield token_ids[start:end]
        start = end


def in_pieces(detokenizer: Detokenizer, pieces: Iterator[list[int]]) -> str:
    return "".join([detokenizer.feed(piece) for piece in pieces]) + detokenizer.finish()


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_as_the_library_decodes_it(
    tokenizer: Tokenizer, library: tokenizers.Tokenizer, text: str
) -> None:
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    assert token_ids == library.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(token_ids, skip_special_tokens=True) == library.decode(token_ids)
    assert in_pieces(
        tokenizer.detokenizer(), iter([[token_id] for token_id in token_ids])
    ) == library.decode(token_ids)


@pytest.mark.parametrize("skip_special_tokens", [True, False])
def test_any_ids_in_any_cutting_are_the_decoded_whole(
    tokenizer: Tokenizer, skip_special_tokens: bool
) -> None:
    chance = random.Random(7)
    for _ in range(200):
        token_ids = [
            chance.randrange(tokenizer.vocab_size + 3) for _ in range(chance.randrange(30))
        ]
        whole = tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens)
        detokenizer = tokenizer.detokenizer(skip_special_tokens=skip_special_tokens)
        assert in_pieces(detokenizer, random_pieces(token_ids, chance)) == whole


@pytest.mark.parametrize("kind", ["byte level", "demo", "word piece", "metaspace"])
@pytest.mark.parametrize("skip_special_tokens", [True, False])
def test_any_ids_decode_as_in_the_library(
    kind: str, skip_special_tokens: bool, tmp_path: Path
) -> None:
    library = KINDS[kind]()
    tokenizer = save_and_load(library, tmp_path)
    chance = random.Random(11)
    for _ in range(200):
        token_ids = [chance.randrange(tokenizer.vocab_size) for _ in range(chance.randrange(30))]
        expected = library.decode(token_ids, skip_special_tokens=skip_special_tokens)
        assert tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["<0xE4>", "<0xBD>", "<0xA0>"], "你"),
        (["<0xE4>", "<0xBD>"], "��"),
        (["<0xE4>", "<0xBD>", "▁w"], "�� w"),
        # the library gives up the valid character too
        (
            ["<0xE4>", "<0xBD>", "<0xA0>", "<0xFF>"],
            "你�",
        ),
        (["▁", "▁w", "o"], " wo"),
        (["<s>", "▁w", "o"], "wo"),
        (["▁▁", "w"], " w"),
        (["<0x20>", "w"], "w"),
    ],
)
def test_sentencepiece_bytes_and_first_space(
    tokens: list[str], expected: str, tmp_path: Path
) -> None:
    library = sentencepiece(strips_first_space=True)
    token_ids = [library.token_to_id(token) or 0 for token in tokens]
    tokenizer = save_and_load(library, tmp_path)
    assert tokenizer.decode(token_ids, skip_special_tokens=True) == expected


def test_half_a_character_is_held_back(tmp_path: Path) -> None:
    tokenizer = save_and_load(byte_level(), tmp_path)
    detokenizer = tokenizer.detokenizer()
    first, *others = tokenizer.encode("🦉", add_special_tokens=False)
    assert others, "the owl is not in the training texts: it is several tokens"
    assert detokenizer.feed([first]) == ""
    assert detokenizer.feed(others) == "🦉"
    assert detokenizer.feed([first]) == ""
    assert detokenizer.finish() == "�"


@pytest.mark.parametrize("kind", KINDS)
def test_text_after_a_prompt_continues_it(kind: str, tmp_path: Path) -> None:
    library = KINDS[kind]()
    tokenizer = save_and_load(library, tmp_path)
    token_ids = tokenizer.encode("Hello world", add_special_tokens=False)
    whole = tokenizer.decode(token_ids, skip_special_tokens=True)
    for num_prompt_tokens in range(1, len(token_ids)):
        prompt, output = token_ids[:num_prompt_tokens], token_ids[num_prompt_tokens:]
        before = tokenizer.decode(prompt, skip_special_tokens=True)
        after = in_pieces(tokenizer.detokenizer(prompt_token_ids=prompt), iter([output]))
        assert before + after == whole


def test_a_character_begun_in_the_prompt_is_completed(tmp_path: Path) -> None:
    tokenizer = save_and_load(byte_level(), tmp_path)
    first, *others = tokenizer.encode("🦉", add_special_tokens=False)
    assert tokenizer.detokenizer(prompt_token_ids=[first]).feed(others) == "🦉"


def test_special_tokens_are_skipped_or_shown(tmp_path: Path) -> None:
    tokenizer = save_and_load(byte_level(), tmp_path)
    token_ids = tokenizer.encode("a<think>b<|end|>c", add_special_tokens=False)
    assert tokenizer.decode(token_ids, skip_special_tokens=True) == "a<think>bc"
    assert tokenizer.decode(token_ids, skip_special_tokens=False) == "a<think>b<|end|>c"


@pytest.mark.parametrize("kind", KINDS)
def test_only_word_pieces_have_spaces_between_special_tokens(kind: str, tmp_path: Path) -> None:
    library = KINDS[kind]()
    tokenizer = save_and_load(library, tmp_path)
    assert tokenizer.spaces_special_tokens == (kind == "word piece")


def test_a_single_token_is_decoded(tmp_path: Path) -> None:
    tokenizer = save_and_load(byte_level(), tmp_path)
    token_ids = tokenizer.encode("x🦉<|end|>", add_special_tokens=False)
    assert (
        b"".join(tokenizer.token_bytes(token_id) for token_id in token_ids).decode() == "x🦉<|end|>"
    )
    assert tokenizer.token_text(token_ids[0]) == "x"
    assert set(tokenizer.token_text(token_ids[1])) == {"�"}
    assert tokenizer.token_text(token_ids[-1]) == "<|end|>"
    assert tokenizer.token_bytes(10**6) == b""


def test_end_tokens_come_from_the_model_and_the_tokenizer(tmp_path: Path) -> None:
    library = byte_level()
    think, end = library.token_to_id("<think>"), library.token_to_id("<|end|>")
    (tmp_path / "tokenizer_config.json").write_text(
        '{"eos_token": {"content": "<|end|>"}, "add_bos_token": false}'
    )
    assert save_and_load(library, tmp_path).eos_token_ids == (end,)
    (tmp_path / "generation_config.json").write_text(f'{{"eos_token_id": {think}}}')
    tokenizer = save_and_load(library, tmp_path)
    assert tokenizer.eos_token_ids == (think, end)
    assert tokenizer.special_tokens == {"eos_token": "<|end|>"}


def test_limits_of_the_training_time_do_not_cut_prompts(tmp_path: Path) -> None:
    library = byte_level()
    library.enable_truncation(4)
    library.enable_padding(length=50)
    tokenizer = save_and_load(library, tmp_path)
    assert len(tokenizer.encode("xyzxyzxyz", add_special_tokens=False)) == 9


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        save_and_load(byte_level(), tmp_path).encode("\ud800", add_special_tokens=False)


def test_a_text_at_which_a_regular_expression_gives_up_is_refused(tmp_path: Path) -> None:
    library = byte_level()
    library.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex("(a+)+$"), "isolated")
    tokenizer = save_and_load(library, tmp_path)

    assert tokenizer.encode("b", add_special_tokens=False) != []
    with pytest.raises(
        InvalidRequest, match=r"the model's tokenizer cannot read this text: .*retry-limit"
    ):
        tokenizer.encode("a" * 2000 + "b", add_special_tokens=False)


def replace(pattern: dict[str, str], content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": pattern, "content": content}


@pytest.mark.parametrize(
    "replacements",
    [
        [replace({"String": "a"}, "aa")] * 40,
        [replace({"Regex": "a"}, "aa")] * 40,
        [replace({"Regex": ""}, "b")] * 40,
        [replace({"String": "a"}, "b" * 2000)],
        [{"type": "Prepend", "prepend": "aa"}] * 40,
        [{"type": "Sequence", "normalizers": [replace({"String": "a"}, "aaaa")] * 3}] * 3,
        [
            {
                "type": "Precompiled",
                "precompiled_charsmap": b64encode(bytes(4) + b"a" * 2000).decode(),
            }
        ],
    ],
)
def test_a_normalizer_that_grows_texts_without_end_is_refused(
    replacements: list[dict[str, object]], tmp_path: Path
) -> None:
    """The tokenizer is refused before it normalises anything.

    The library normalises added tokens as soon as it reads them.
    """
    content = json.loads(byte_level().to_str())
    content["normalizer"] = {"type": "Sequence", "normalizers": replacements}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))

    with pytest.raises(
        ModelLoadError, match=r"normalizer: replacements must make <= 1024 characters of one"
    ):
        load_tokenizer(tmp_path)


def test_a_normalizer_as_models_have_it_is_read(tmp_path: Path) -> None:
    library = byte_level()
    steps = [
        normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        normalizers.Prepend("_"),
        normalizers.NFKD(),
    ]
    library.normalizer = normalizers.Sequence(steps)

    assert save_and_load(library, tmp_path).encode("a", add_special_tokens=False) != []


def with_many_replacements(pattern: str) -> tokenizers.Tokenizer:
    library = byte_level()
    library.normalizer = normalizers.Sequence(
        [normalizers.Replace(tokenizers.Regex(pattern), "_")] * 12
    )
    return library


@pytest.mark.parametrize(
    "pattern", [r"\s+", " {2,}", "[ \u3000]", r"\p{Zs}+", r"\.{3}", "^x", "ab*"]
)
def test_many_replacements_of_one_character_by_another_are_read(
    pattern: str, tmp_path: Path
) -> None:
    assert (
        save_and_load(with_many_replacements(pattern), tmp_path).encode(
            "a", add_special_tokens=False
        )
        != []
    )


@pytest.mark.parametrize(
    "pattern", ["ab|c*", "", "a*", "a{0,2}", "a{2}*", "a+*", r"\b", "(a)?", r"a\K", "a(?#x)?"]
)
def test_many_replacements_that_may_match_nothing_are_refused(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="normalizer"):
        save_and_load(with_many_replacements(pattern), tmp_path)


@pytest.mark.parametrize("content", [None, "", "{", '{"model": 1}'])
def test_a_missing_or_broken_tokenizer_file_is_named(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelLoadError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)
