"""Writes tests/gguf/golden/tokenizers/: GGUF files with nothing but a tokenizer, and what the originals make of texts.

The originals are the demo model's and two of SentencePiece, trained here: one that begins a text with a space, as
Llama 2, and one with runs of spaces and line ends as tokens of their own, as Gemma. See README.md.
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


if __name__ == "__main__":
    main()
