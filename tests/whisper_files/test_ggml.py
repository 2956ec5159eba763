"""Tests that whisper.cpp's GGML files become model directories with a tokenizer."""

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.errors import ModelLoadError
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.whisper_files.alignment_heads import find_alignment_heads
from ouzel.whisper_files.byte_pairs import make_byte_alphabet, rebuild_merges
from ouzel.whisper_files.model_directory import make_whisper_directory
from ouzel.whisper_files.special_tokens import count_special_tokens
from tests.whisper_files.reading import open_tensors, read_json, read_parts, read_rows
from tests.whisper_files.writers import make_tensors, write_ggml

WIDTH, NUM_LAYERS, NUM_BINS, NUM_HEADS = 32, 2, 8, 2
WORDS = (b" t", b"he", b" the", b"\xe2\x99", b"\xe2\x99\xaa")
MATRIX = "model.decoder.layers.1.encoder_attn.v_proj.weight"
_Q8_0, _Q5_0 = 8, 6


def make_tokens(count: int) -> list[bytes]:
    """Makes tokens of texts: all bytes, a few words, then pairs of bytes."""
    tokens = [bytes([byte]) for byte in range(256)] + list(WORDS)
    known = set(tokens)
    for first in range(256):
        for second in range(256):
            pair = bytes([first, second])
            if len(tokens) < count and pair not in known:
                tokens.append(pair)
    return tokens


def make_sizes(vocab_size: int) -> list[int]:
    encoder = [1500, WIDTH, NUM_HEADS, NUM_LAYERS]
    return [vocab_size, *encoder, 48, WIDTH, NUM_HEADS, NUM_LAYERS, NUM_BINS, 1]


# The last id of texts has no token in models of several languages.
UNUSED = [b""]


def store(
    path: Path, vocab_size: int = 51865, blocks: dict[str, tuple[int, bytes]] | None = None
) -> dict[str, NDArray[np.float32]]:
    """Writes a file, and returns its tensors by transformers' names."""
    tensors = make_tensors(WIDTH, NUM_LAYERS, vocab_size, NUM_BINS)
    num_texts = 50256 if vocab_size == 51864 else 50257
    tokens = make_tokens(num_texts - 1) + UNUSED
    write_ggml(path, make_sizes(vocab_size), tokens, tensors, blocks)
    return tensors


def test_tensors_sizes_and_tokens_are_read(tmp_path: Path) -> None:
    expected = store(tmp_path / "ggml-tiny.bin")
    made = make_whisper_directory(tmp_path / "ggml-tiny.bin", tmp_path / "cache")
    assert make_whisper_directory(tmp_path, tmp_path / "cache") == made
    tensors = open_tensors(made)
    for name, values in expected.items():
        assert np.array_equal(read_rows(tensors, name, values.shape), values), name
    assert len(list(tensors.names())) == len(expected)
    config = read_json(made / "config.json")
    assert {name: config[name] for name in ("d_model", "num_mel_bins", "vocab_size")} == {
        "d_model": WIDTH,
        "num_mel_bins": NUM_BINS,
        "vocab_size": 51865,
    }
    assert config["encoder_layers"] == config["decoder_attention_heads"] == 2
    tokenizer = load_tokenizer(made)
    ids = tokenizer.encode(" the t\u266a", add_special_tokens=False)
    decoded = [tokenizer.decode([each], skip_special_tokens=False) for each in ids]
    assert decoded == [" the", " t", "\u266a"]


@pytest.mark.parametrize(
    ("vocab_size", "expected"),
    [
        (51864, {"end": 50256, "en": 50258, "translate": 50357, "notimestamps": 50362}),
        (51865, {"end": 50257, "en": 50259, "translate": 50358, "notimestamps": 50363}),
        (51866, {"end": 50257, "en": 50259, "translate": 50359, "notimestamps": 50364}),
    ],
)
def test_the_number_of_tokens_tells_the_special_ones(
    vocab_size: int, expected: dict[str, int]
) -> None:
    special = count_special_tokens(vocab_size, "a file")
    found = {"end": special.end} | dict(special.languages) | dict(special.others)
    assert {name: found[name] for name in expected} == expected
    assert special.first_timestamp + 1501 == vocab_size
    assert special.is_multilingual == (vocab_size > 51864)
    assert ("yue" in special.languages) == (vocab_size == 51866)


def test_generation_config_names_tasks_languages_and_unspoken_tokens(tmp_path: Path) -> None:
    store(tmp_path / "ggml-tiny.bin")
    made = make_whisper_directory(tmp_path, tmp_path / "cache")
    config = read_json(made / "generation_config.json")
    assert config["task_to_id"] == {"transcribe": 50359, "translate": 50358}
    assert config["lang_to_id"]["<|de|>"] == 50261
    assert config["begin_suppress_tokens"] == [ord(" "), 50257]
    assert {ord("#"), 256 + WORDS.index(b"\xe2\x99\xaa"), 50258, 50361} < {
        *config["suppress_tokens"]
    }
    assert ord("a") not in config["suppress_tokens"]
    assert "alignment_heads" not in config


def test_models_of_openai_have_alignment_heads() -> None:
    assert find_alignment_heads(51866, 4, 1280) == [
        (2, 4),
        (2, 11),
        (3, 3),
        (3, 6),
        (3, 11),
        (3, 14),
    ]
    assert find_alignment_heads(51866, 4, 64) is None


def test_models_for_english_have_no_tasks(tmp_path: Path) -> None:
    store(tmp_path / "ggml-tiny.en.bin", 51864)
    made = make_whisper_directory(tmp_path, tmp_path / "cache")
    config = read_json(made / "generation_config.json")
    assert not config["is_multilingual"]
    assert "task_to_id" not in config
    assert config["no_timestamps_token_id"] == 50362


def pack_q8_0(levels: NDArray[np.int8], scales: NDArray[np.float16]) -> bytes:
    """Packs levels [rows, blocks, 32] with a scale for each block."""
    return b"".join(
        scale.tobytes() + block.tobytes()
        for block, scale in zip(levels.reshape(-1, 32), scales.reshape(-1), strict=True)
    )


def pack_q5_0(levels: NDArray[np.int8], scales: NDArray[np.float16]) -> bytes:
    """Packs levels of -16 to 15; the first 16 are the low halves of the bytes."""
    packed = []
    for block, scale in zip(levels.reshape(-1, 32), scales.reshape(-1), strict=True):
        stored = (block.astype(np.int16) + 16).astype(np.uint8)
        high = sum(int(value >> 4) << place for place, value in enumerate(stored))
        low = (stored[:16] & 15) | (stored[16:] & 15) << 4
        packed.append(scale.tobytes() + struct.pack("<I", high) + low.astype(np.uint8).tobytes())
    return b"".join(packed)


@pytest.mark.parametrize(
    ("number", "form"), [(_Q8_0, StoredForm("Q8_0", 8)), (_Q5_0, StoredForm("Q5_0", 5))]
)
def test_quantised_matrices_keep_their_blocks(
    tmp_path: Path, number: int, form: StoredForm
) -> None:
    random = np.random.default_rng(3)
    levels = random.integers(-16, 16, (WIDTH, 1, 32), np.int8)
    scales = random.random((WIDTH, 1)).astype(np.float16)
    pack = pack_q8_0 if number == _Q8_0 else pack_q5_0
    store(tmp_path / "ggml-tiny.bin", blocks={MATRIX: (number, pack(levels, scales))})
    tensors = open_tensors(make_whisper_directory(tmp_path, tmp_path / "cache"))
    expected = (levels * scales[..., None].astype(np.float32)).reshape(WIDTH, WIDTH)
    assert np.allclose(read_rows(tensors, MATRIX, (WIDTH, WIDTH)), expected, rtol=1e-6)
    assert np.allclose(read_parts(tensors, MATRIX, (WIDTH, WIDTH)), expected, rtol=1e-6)
    plain = MATRIX.replace("model.decoder.", "model.")
    assert tensors.stored_form(Tensor(plain, (WIDTH, WIDTH))) == form


def test_merges_are_the_parts_that_earlier_tokens_make() -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"he", b"th", b"the", b"hel"]
    merges = rebuild_merges(tokens, "a file")
    # `th` has a later rank than `he`, so `the` is `t` and `he`.
    assert merges == [(b"h", b"e"), (b"t", b"h"), (b"t", b"he"), (b"he", b"l")]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([b"abc"], "token 256 must consist of two earlier ones, found 3 parts"),
        ([b"a"], "tokens must differ"),
    ],
)
def test_tokens_of_another_encoding_are_refused(more: list[bytes], message: str) -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    with pytest.raises(ModelLoadError, match=message):
        rebuild_merges(tokens + more, "a file")
    with pytest.raises(ModelLoadError, match="each byte must be a token"):
        rebuild_merges(tokens[1:], "a file")


def test_bytes_have_distinct_printable_characters() -> None:
    alphabet = make_byte_alphabet()
    assert len(set(alphabet)) == 256
    assert alphabet[ord("a")] == "a"
    assert alphabet[ord(" ")] == "\u0120"
    assert all(character.isprintable() for character in alphabet)


def test_a_file_that_ends_within_a_tensor_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ggml-tiny.bin"
    store(file)
    content = file.read_bytes()
    for length in (3, 4, 40, 60, 5000, len(content) - 1):
        file.write_bytes(content[:length])
        with pytest.raises(ModelLoadError, match=r"truncated|no Whisper model"):
            make_whisper_directory(file, tmp_path / "cache")


@pytest.mark.parametrize(
    ("vocab_size", "num_tokens", "message"),
    [
        (51863, 10, "must have 51864 to 51866 tokens, found 51863"),
        (51864, 300, "must have 50256 tokens of texts, found 300"),
    ],
)
def test_other_vocabularies_are_refused(
    tmp_path: Path, vocab_size: int, num_tokens: int, message: str
) -> None:
    tokens = make_tokens(num_tokens)[:num_tokens]
    write_ggml(tmp_path / "ggml-tiny.bin", make_sizes(vocab_size), tokens, {})
    with pytest.raises(ModelLoadError, match=message):
        make_whisper_directory(tmp_path, tmp_path / "cache")


def test_one_of_several_files_must_be_named(tmp_path: Path) -> None:
    for name in ("ggml-tiny.bin", "ggml-base.bin"):
        write_ggml(tmp_path / name, make_sizes(51864), [], {})
    with pytest.raises(ModelLoadError, match=r"has 2 GGML models: ggml-base.bin, ggml-tiny.bin"):
        make_whisper_directory(tmp_path, tmp_path / "cache")
