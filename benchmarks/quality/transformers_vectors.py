"""Makes the vectors of an embedding model with transformers in float32: the mean over tokens, with
the length 1.

usage: PYTHON -m benchmarks.quality.transformers_vectors ORDER.json

PYTHON has torch and transformers. ORDER has `model` (a directory), `texts` and `out`, an .npy file.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    tokenizer = AutoTokenizer.from_pretrained(order["model"])
    model = AutoModel.from_pretrained(order["model"], dtype=torch.float32).eval()
    vectors = []
    with torch.inference_mode():
        for text in order["texts"]:
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0)
            vectors.append((mean / mean.norm()).numpy())
    np.save(order["out"], np.array(vectors, np.float32))


if __name__ == "__main__":
    main()
