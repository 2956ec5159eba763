"""Gets the answers of llama.cpp for the same token ids.

It needs llama-cpp-python (the dependency group `bench`).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.comparison.llama_library import Context, Model, Rows, Setting
from benchmarks.quality.figures import Answers
from benchmarks.quality.truth import NUM_GREEDY, Floats, Ids, scored_positions

SETTINGS = {
    "llama.cpp": Setting(flash_attention=True, quantised_cache=False),
    "llama.cpp, Q8_0 cache": Setting(flash_attention=True, quantised_cache=True),
}


def answer(path: Path, windows: Ids, setting: Setting) -> Iterator[Answers]:
    """Yields the answers for each window. Raises RuntimeError where llama.cpp refuses."""
    model = Model(path, num_threads=os.cpu_count() or 1)
    for window in windows:
        yield Answers(
            _scored_logits(model, setting, window),
            _greedy(model, setting, window[: len(window) // 2]),
        )
    model.close()


def _scored_logits(model: Model, setting: Setting, window: Ids) -> Floats:
    count = len(window)
    wanted = np.zeros(count, np.bool_)
    wanted[scored_positions(count)] = True
    context = Context(model, setting, 1, count)
    places = np.arange(count, dtype=np.int32)
    logits = context.decode(Rows(window, places, np.zeros(count, np.int32), wanted)).copy()
    context.close()
    return logits


def _greedy(model: Model, setting: Setting, prompt: Ids) -> list[int]:
    context = Context(model, setting, 1, len(prompt) + NUM_GREEDY)
    token_ids = [int(context.prefill(prompt.tolist()).argmax())]
    while len(token_ids) < NUM_GREEDY:
        position = len(prompt) + len(token_ids) - 1
        token_ids.append(int(context.prefill(token_ids[-1:], first_position=position).argmax()))
    context.close()
    return token_ids
