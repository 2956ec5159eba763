"""Writes small BERT checkpoints with random weights: a model for embeddings, and a reranker.

Vectors are means over tokens, and the weights above the embeddings are small. So texts with common
words have near vectors. The reranker's scores mean nothing, but differ.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase, digits, punctuation

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing

SIZE, NUM_LAYERS, NUM_HEADS, INNER = 32, 2, 2, 48
MAX_TOKENS = 256
Arrays = dict[str, NDArray[np.float32]]


def write_embedder(directory: Path, text: str) -> None:
    """Writes a model for embeddings. The words of `text` are tokens, others are spelled."""
    vocab_size = _write_common(directory, text, {"architectures": ["BertModel"]})
    _write_tensors(directory / "model.safetensors", _make_encoder(vocab_size))
    kinds = {
        "": "transformer.Transformer",
        "1_Pooling": "pooling.Pooling",
        "2_Normalize": "normalize.Normalize",
    }
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.{kind}"}
        for place, (path, kind) in enumerate(kinds.items())
    ]
    _write_json(directory / "modules.json", modules)
    (directory / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": SIZE, "pooling_mode_mean_tokens": True}
    _write_json(directory / "1_Pooling" / "config.json", pooling)


def write_reranker(directory: Path, text: str) -> None:
    """Writes a cross encoder. The words of `text` are tokens, others are spelled."""
    config = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
    }
    vocab_size = _write_common(directory, text, config)
    tensors = {f"bert.{name}": array for name, array in _make_encoder(vocab_size).items()}
    rng = np.random.default_rng(1)
    tensors["classifier.weight"] = rng.standard_normal((1, SIZE), np.float32)
    tensors["classifier.bias"] = np.zeros(1, np.float32)
    _write_tensors(directory / "model.safetensors", tensors)


def _write_common(directory: Path, text: str, config: Mapping[str, object]) -> int:
    """Writes the tokenizer and config.json, and returns the size of the vocabulary."""
    directory.mkdir()
    tokenizer = _make_tokenizer(text)
    tokenizer.save(str(directory / "tokenizer.json"))
    _write_json(directory / "tokenizer_config.json", {"model_max_length": MAX_TOKENS})
    shape = {
        "model_type": "bert",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": SIZE,
        "num_hidden_layers": NUM_LAYERS,
        "num_attention_heads": NUM_HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": MAX_TOKENS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    _write_json(directory / "config.json", {**shape, **config})
    return tokenizer.get_vocab_size()


def _make_tokenizer(text: str) -> Tokenizer:
    letters = [*ascii_lowercase, *digits]
    words = "".join(each if each.isalnum() else " " for each in text.lower()).split()
    parts = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *punctuation]
    names = dict.fromkeys([*parts, *(f"##{each}" for each in letters), *sorted(set(words))])
    vocab = {name: token_id for token_id, name in enumerate(names)}
    tokenizer = Tokenizer(WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])],
    )
    return tokenizer


def _make_encoder(vocab_size: int) -> Arrays:
    rng = np.random.default_rng(0)
    tensors: Arrays = {}

    def add(name: str, *shape: int, scale: float = 0.1) -> None:
        tensors[f"{name}.weight"] = rng.standard_normal(shape, np.float32) * np.float32(scale)

    def add_dense(name: str, num_outputs: int, num_inputs: int) -> None:
        add(name, num_outputs, num_inputs)
        tensors[f"{name}.bias"] = np.zeros(num_outputs, np.float32)

    def add_norm(name: str) -> None:
        tensors[f"{name}.weight"] = np.ones(SIZE, np.float32)
        tensors[f"{name}.bias"] = np.zeros(SIZE, np.float32)

    add("embeddings.word_embeddings", vocab_size, SIZE, scale=1)
    add("embeddings.position_embeddings", MAX_TOKENS, SIZE)
    add("embeddings.token_type_embeddings", 2, SIZE)
    add_norm("embeddings.LayerNorm")
    for layer in range(NUM_LAYERS):
        prefix = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            add_dense(f"{prefix}.attention.self.{name}", SIZE, SIZE)
        add_dense(f"{prefix}.attention.output.dense", SIZE, SIZE)
        add_norm(f"{prefix}.attention.output.LayerNorm")
        add_dense(f"{prefix}.intermediate.dense", INNER, SIZE)
        add_dense(f"{prefix}.output.dense", SIZE, INNER)
        add_norm(f"{prefix}.output.LayerNorm")
    add_dense("pooler.dense", SIZE, SIZE)
    return tensors


def _write_tensors(path: Path, tensors: Arrays) -> None:
    """Writes a safetensors file: u64 length of the header, the header as JSON, the tensors."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    data = b"".join(array.tobytes() for array in tensors.values())
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))
