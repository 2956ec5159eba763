"""The loader of an encoder hands this to its runner."""

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
    """Its graph gives hidden rows of all tokens, [T, hidden_size], or where it scores, logits [B,
    labels].
    """

    graph: ov.Model
    arrays: list[
        NDArray[np.generic]
    ]  # the graph's constants point into them: keep them as long as the compiled model
    ropes: dict[str, Rope]  # angles for the inputs `rope_cos.<name>`
    hidden_size: int
    vocab_size: int
    max_positions: int  # tokens of a text
    num_labels: int = 0  # 0: it does not score
    score_pooling: ScorePooling = "cls"
    # positions count from behind it, and leave it out; None: they count from 0
    padding_id: int | None = None
    # tokens to either side that a token sees in some layers; 0: there are no such layers
    window: int = 0
    weights: str = ""  # how they are encoded
    mappings: tuple[mmap.mmap, ...] = ()  # the files that arrays lie in
    cache_entry: Path | None = None  # that the weights are mapped from
    is_entry_new: bool = False  # it was made just now
    left_out: tuple[
        str, ...
    ] = ()  # beginnings of names that the checkpoint may have beside what is used
