"""What a model's vectors become: embeddings of their length and size, or scores."""

import numpy as np
from numpy.typing import NDArray

from ouzel.checkpoint.activations import activated
from ouzel.checkpoint.sentence_files import SentenceFiles

Vectors = NDArray[np.float32]

_SMALLEST_LENGTH = np.float32(1e-12)  # below it a vector is not stretched, as in torch


def finished_vectors(
    vectors: Vectors,
    files: SentenceFiles,
    *,
    dimensions: int | None,
    normalises: bool | None = None,
) -> Vectors:
    """Gives them the length 1 where the model's files, or the request, say so; of fewer dimensions those have it."""
    normalises = files.normalises if normalises is None else normalises
    kept: Vectors = vectors if dimensions is None else vectors[:, :dimensions]
    if not normalises:
        return kept
    lengths = np.linalg.norm(kept, axis=1, keepdims=True)
    unit: Vectors = kept / np.maximum(lengths, _SMALLEST_LENGTH)
    return unit


def score_values(logits: Vectors, files: SentenceFiles, *, activates: bool) -> Vectors:
    """Takes [pairs, labels]; a single label's logit becomes its sigmoid unless the files name another function."""
    if not activates:
        return logits
    activation = files.activation or ("sigmoid" if logits.shape[1] == 1 else "identity")
    return activated(logits, activation)


def relevance(logits: Vectors) -> Vectors:
    """Takes [pairs, 2], logits of yes and no; returns [pairs, 1], the log-odds of yes."""
    odds: Vectors = logits[:, :1] - logits[:, 1:]
    return odds
