"""Writes the checkpoints of all products: real shapes with random weights that count.

After token t the model says t + 1. So greedy answers are known without training, and they are the
same in every product and precision: proposals are accepted equally often everywhere. t + 2 to t + 4
are the next likely tokens, so sampling has about as much to choose from as in a trained model that
is rather sure. A draft model is wrong about a given share of the tokens.

The attention and feed-forward layers hardly add to the residual stream (they cost the usual time),
so the head gets the last token's embedding e(t). Row j of the head is the sum of e(j - k) *
LIKELIHOODS[k - 1].
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.library_tokenizer import END, train_tokenizer
from benchmarks.make_checkpoint import (
    Chunks,
    ModelShape,
    bfloat16_bytes,
    random_chunks,
    write_checkpoint,
)

# the first two differ by five deviations of the noise between random rows
LIKELIHOODS = (
    1.0,
    0.8,
    0.75,
    0.7,
)
# e ** 14 is eight times the vocabulary: little is left for all other tokens together
TOP_LOGIT = 14.0
ROWS_AT_ONCE = 8192


def counting_chunks(hidden_size: int, wrong_share: float = 0.0) -> Chunks:
    """Returns a function that makes a model's tensors.

    For `wrong_share` of the tokens the model says t + 5 instead of t + 1.
    """
    embedding: list[NDArray[np.float16]] = []

    def chunks(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[bytes]:
        if name == "model.embed_tokens.weight":
            embedding.append(rng.standard_normal(shape, np.float32).astype(np.float16))
            yield from (bfloat16_bytes(part.astype(np.float32)) for part in _pieces(embedding[0]))
        elif name == "lm_head.weight":
            yield from _head(embedding.pop(), hidden_size, wrong_share, rng)
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            yield bfloat16_bytes(rng.standard_normal(shape, np.float32) * np.float32(2e-4))
        else:
            yield from random_chunks(name, shape, rng)

    return chunks


def _pieces(matrix: NDArray[np.float16]) -> Iterator[NDArray[np.float16]]:
    for start in range(0, len(matrix), ROWS_AT_ONCE):
        yield matrix[start : start + ROWS_AT_ONCE]


def _head(
    embedding: NDArray[np.float16], hidden_size: int, wrong_share: float, rng: np.random.Generator
) -> Iterator[bytes]:
    scale = TOP_LOGIT / hidden_size
    is_wrong = rng.random(len(embedding)) < wrong_share  # index: the token before
    for start in range(0, len(embedding), ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(embedding)))
        sums = np.zeros((len(rows), hidden_size), np.float32)
        for distance, likelihood in enumerate(LIKELIHOODS, 1):
            right = np.ones(len(rows)) if distance > 1 else ~is_wrong[rows - 1]
            sums += (
                embedding[rows - distance]
                * np.float32(scale * likelihood)
                * right[:, None].astype(np.float32)
            )
        if wrong_share:
            sums += (
                embedding[rows - 5]
                * np.float32(scale)
                * is_wrong[rows - 5][:, None].astype(np.float32)
            )
        yield bfloat16_bytes(sums)


def make(directory: Path, shape: ModelShape, *, wrong_share: float = 0.0) -> Path:
    """Writes the checkpoint, unless it is there, and returns its directory.

    Its tokenizer is trained, for grammars.
    """
    if (directory / "generation_config.json").exists():
        return directory
    untied = replace(shape, tied=False)
    write_checkpoint(
        directory, untied, seed=0, chunks=counting_chunks(untied.hidden_size, wrong_share)
    )
    (directory / "generation_config.json").unlink()
    tokenizer = train_tokenizer(untied.vocab_size)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = json.loads((directory / "config.json").read_text())
    config["eos_token_id"] = config["bos_token_id"] = tokenizer.token_to_id(END)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    # The last file: an unfinished directory has none.
    (directory / "generation_config.json").write_text(
        json.dumps({"eos_token_id": config["eos_token_id"]}) + "\n"
    )
    return directory
