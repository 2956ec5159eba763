"""Makes the inputs of a step that every graph takes."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.attention import TWO_WAY_BEGINS
from ouzel.backends.openvino.graph.rope import Rope
from ouzel.engine.base import ForwardBatch

Inputs = dict[str, NDArray[np.generic]]


def paging_inputs(batch: ForwardBatch) -> Inputs:
    return {
        "input_ids": batch.token_ids,
        "past_lens": batch.past_lens,
        "subsequence_begins": batch.subsequence_begins,
        "block_indices": batch.block_indices,
        "block_indices_begins": batch.block_indices_begins,
        "max_context_len": np.array(batch.max_context_len, np.int32),
        "sampled_rows": batch.sampled_rows,
    }


def rope_inputs(ropes: Mapping[str, Rope], batch: ForwardBatch) -> Inputs:
    inputs: Inputs = {}
    for name, rope in ropes.items():
        inputs[f"rope_cos.{name}"], inputs[f"rope_sin.{name}"] = rope.cos_sin(batch.positions)
    return inputs


def two_way_inputs(batch: ForwardBatch) -> Inputs:
    begins = batch.two_way_begins
    return {
        TWO_WAY_BEGINS: np.full(len(batch.token_ids), -1, np.int32) if begins is None else begins
    }
