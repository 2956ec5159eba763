"""Describes a loaded encoder for its runner."""

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.library import ov

ScorePooling = Literal["cls", "mean"]


@dataclass(frozen=True, kw_only=True)
class EncoderModel:
    """The graph of an encoder and the facts that its runner needs.

    The graph gives the hidden rows of all tokens, [T, hidden_size], or, if the model scores,
    logits, [B, labels].
    """

    graph: ov.Model
    # The graph's constants point into these arrays: keep them as long as the compiled model.
    arrays: list[NDArray[np.generic]]
    ropes: dict[str, Rope]  # angles for the inputs `rope_cos.<name>`
    hidden_size: int
    vocab_size: int
    max_positions: int  # tokens of a text
    num_labels: int = 0  # 0: the model does not score
    score_pooling: ScorePooling = "cls"
    # The row of the padding token: positions are counted from the row after it; None: from row 0.
    padding_id: int | None = None
    # tokens to either side that a token attends to in layers with a window; 0: there are no such
    # layers
    window: int = 0
    num_tasks: int = 0  # adapters in the checkpoint; each text chooses one of them, or none
    task_rank: int = 0  # the rank of their matrices
    weights: str = ""  # the encoding of the weights, as users read it
    mappings: tuple[mmap.mmap, ...] = ()  # the files that hold the arrays
    cache_entry: Path | None = None  # the entry that the weights are mapped from
    is_entry_new: bool = False  # this start has made the entry
    # prefixes of tensors that the checkpoint may have although the model does not use them
    left_out: tuple[str, ...] = ()
