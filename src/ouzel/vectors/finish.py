"""Turns a model's raw vectors into embeddings or scores."""

import numpy as np
from numpy.typing import NDArray

from ouzel.checkpoint.activations import apply_activation
from ouzel.checkpoint.sentence_files import SentenceFiles

Vectors = NDArray[np.float32]

_SMALLEST_LENGTH = np.float32(1e-12)  # shorter vectors are divided by this length, as in torch


def finish_vectors(
    vectors: Vectors,
    files: SentenceFiles,
    *,
    dimensions: int | None,
    normalises: bool | None = None,
) -> Vectors:
    """Cuts the vectors to `dimensions`, then gives them the length 1 if the model's files or the
    request say so.
    """
    normalises = files.normalises if normalises is None else normalises
    cut: Vectors = vectors if dimensions is None else vectors[:, :dimensions]
    return normalise_rows(cut) if normalises else cut


def normalise_rows(vectors: Vectors) -> Vectors:
    """Gives each vector the length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, _SMALLEST_LENGTH)
    return unit


def activate_logits(logits: Vectors, files: SentenceFiles, *, activates: bool) -> Vectors:
    """Turns logits [pairs, labels] into scores; without `activates`, returns the logits.

    A single label gets a sigmoid, unless the files name another function.
    """
    if not activates:
        return logits
    activation = files.activation or ("sigmoid" if logits.shape[1] == 1 else "identity")
    return apply_activation(logits, activation)


def compute_relevance(logits: Vectors) -> Vectors:
    """Turns logits [pairs, 2] of yes and no into the log-odds of yes, [pairs, 1]."""
    odds: Vectors = logits[:, :1] - logits[:, 1:]
    return odds
