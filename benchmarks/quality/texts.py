"""The texts of the bench: windows of Python's own help texts as token ids, and short texts for
embeddings.
"""

from pydoc_data.topics import topics

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

NUM_WINDOWS = 4
WINDOW_LEN = 512
_NUM_CHARACTERS = 400_000

TokenIds = NDArray[np.int64]

SENTENCES = (
    "A cat sleeps on the warm stones of the harbour.",
    "The kitten naps beside the boats.",
    "Die Katze schläft auf den warmen Steinen.",
    "How do I read a file line by line in Python?",
    "with open(path) as file:\n    for line in file:\n        print(line)",
    "Interest rates were left unchanged at the meeting on Thursday.",
    "Mitochondria produce most of the energy of a cell.",
    "東京は日本の首都です。",
)


def make_windows(tokenizer: Tokenizer) -> TokenIds:
    """Cuts windows [NUM_WINDOWS, WINDOW_LEN], evenly spaced, out of Python's help texts.

    Each window begins with the control tokens that the tokenizer puts before a text, such as BOS.
    """
    text = "\n\n".join(topics[name] for name in sorted(topics))[:_NUM_CHARACTERS]
    token_ids = tokenizer.encode(text, add_special_tokens=False).ids
    first = tokenizer.encode("", add_special_tokens=True).ids
    length = WINDOW_LEN - len(first)
    step = (len(token_ids) - length) // NUM_WINDOWS
    windows = [
        [*first, *token_ids[start : start + length]] for start in range(0, step * NUM_WINDOWS, step)
    ]
    return np.array(windows, np.int64)
