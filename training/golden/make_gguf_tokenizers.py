"""Writes tests/gguf/golden/tokenizers/: GGUF files with nothing but a tokenizer, and what the originals make of texts.

The originals are the demo model's and three of SentencePiece, trained here: one that begins a text with a space, as
Llama 2, one with runs of spaces and line ends as tokens of their own, as Gemma, and one with probabilities and a table
of characters, as XLM-RoBERTa. See README.md.
"""

import json
import tempfile
from pathlib import Path

import sentencepiece
from gguf import GGUFWriter, TokenType

from training.golden.gguf_texts import TEXTS
from training.golden.make_gguf import GOLDEN, TESTS, add_tokenizer

TOKENIZERS = GOLDEN / "tokenizers"
DEMO = TESTS.parent / "src" / "ouzel" / "demo" / "model"
OWN_SYMBOLS = ["\n\n", "\u2581\u2581", "\u2581\u2581\u2581", "\u2581\u2581\u2581\u2581", "<table>"]


def train(
    path: Path, *, adds_space: bool, symbols: list[str]
) -> sentencepiece.SentencePieceProcessor:
    """Learns pieces of this repository's documents."""
    documents = sorted((TESTS.parent / "docs").rglob("*.md"))
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(map(str, documents)),
        model_prefix=str(path),
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        character_coverage=0.999,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=adds_space,
        allow_whitespace_only_pieces=True,
        split_digits=True,
        user_defined_symbols=symbols,
        control_symbols=["<end_of_turn>"],
    )
    return sentencepiece.SentencePieceProcessor(model_file=f"{path}.model")


def add_sentencepiece(
    writer: GGUFWriter,
    pieces: sentencepiece.SentencePieceProcessor,
    symbols: list[str],
    *,
    adds_space: bool,
) -> None:
    """Writes what convert_hf_to_gguf.py does: symbols of the model's own are plain text with the least score."""
    tokens, scores, kinds = [], [], []
    for id_ in range(pieces.vocab_size()):
        token, score, kind = pieces.IdToPiece(id_), pieces.GetScore(id_), TokenType.NORMAL
        if pieces.IsUnknown(id_):
            kind = TokenType.UNKNOWN
        elif pieces.IsControl(id_):
            kind = TokenType.CONTROL
        elif pieces.IsByte(id_):
            kind = TokenType.BYTE
        elif token in symbols:
            token, score, kind = token.replace("\u2581", " "), -1000.0, TokenType.USER_DEFINED
        tokens.append(token.encode())
        scores.append(score)
        kinds.append(kind)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(pieces.bos_id())
    writer.add_eos_token_id(pieces.eos_id())
    writer.add_unk_token_id(pieces.unk_id())
    writer.add_add_space_prefix(adds_space)


def train_unigram(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Learns pieces with probabilities; a small table of characters stands in for NFKC."""
    documents = sorted((TESTS.parent / "docs").rglob("*.md"))
    letters = [(code, code + 32) for code in range(ord("A"), ord("Z") + 1)]
    full_width = [(0xFF21 + number, ord("a") + number) for number in range(26)]
    spaces = [(code, 0x20) for code in (0x9, 0xA, 0xD, 0xA0)]
    table = path.with_suffix(".tsv")
    table.write_text(
        "".join(f"{one:X}\t{two:X}\n" for one, two in [*letters, *full_width, *spaces])
        + "FB01\t66 69\n"
    )
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(map(str, documents)),
        model_prefix=str(path),
        model_type="unigram",
        vocab_size=500,
        character_coverage=0.999,
        normalization_rule_tsv=str(table),
    )
    return sentencepiece.SentencePieceProcessor(model_file=f"{path}.model")


def write_unigram(name: str) -> None:
    """Writes what convert_hf_to_gguf.py does for XLM-RoBERTa, whose ids are moved by one."""
    from sentencepiece import sentencepiece_model_pb2  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as directory:
        pieces = train_unigram(Path(directory) / name)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString((Path(directory) / f"{name}.model").read_bytes())
    learned = range(3, pieces.vocab_size())
    writer = GGUFWriter(TOKENIZERS / f"{name}.gguf", "bert")
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(["<s>", "<pad>", "</s>", "<unk>", *map(pieces.IdToPiece, learned)])
    writer.add_token_scores([0.0] * 4 + [pieces.GetScore(id_) for id_ in learned])
    writer.add_token_types(
        [*[TokenType.CONTROL] * 3, TokenType.UNKNOWN, *[TokenType.NORMAL] * len(learned)]
    )
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_precompiled_charsmap(model.normalizer_spec.precompiled_charsmap)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    finish(writer)
    ids = {text: [id_ + 1 if id_ else 3 for id_ in pieces.encode(text)] for text in TEXTS}
    (TOKENIZERS / f"{name}.json").write_text(json.dumps(ids, ensure_ascii=False, indent=0) + "\n")


def finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def main() -> None:
    TOKENIZERS.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(TOKENIZERS / "demo.gguf", "qwen3")
    add_tokenizer(writer, DEMO, json.loads((DEMO / "config.json").read_text()))
    finish(writer)
    for name, adds_space, symbols in (
        ("with_space", True, []),
        ("with_symbols", False, OWN_SYMBOLS),
    ):
        with tempfile.TemporaryDirectory() as directory:
            pieces = train(Path(directory) / name, adds_space=adds_space, symbols=symbols)
        writer = GGUFWriter(TOKENIZERS / f"{name}.gguf", "llama")
        add_sentencepiece(writer, pieces, symbols, adds_space=adds_space)
        finish(writer)
        ids = {text: pieces.encode(text) for text in TEXTS}
        (TOKENIZERS / f"{name}.json").write_text(
            json.dumps(ids, ensure_ascii=False, indent=0) + "\n"
        )
    write_unigram("unigram")


if __name__ == "__main__":
    main()
