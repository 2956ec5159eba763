"""Writes mel_references.npz with the features that transformers computes.

    PYTHONPATH=. python tests/audio/data/make_mel_references.py

runs from the root of the repository in an environment with transformers and numpy; torch is not
needed. The file was written with transformers 5.24.0.
"""

from pathlib import Path

import numpy as np
from transformers import WhisperFeatureExtractor

from tests.audio.signals import SIGNALS

STEP = 7  # every seventh frame is stored
PLACE = Path(__file__).parent / "mel_references.npz"


def main() -> None:
    references = {}
    for num_bins in (80, 128):
        extractor = WhisperFeatureExtractor(feature_size=num_bins)
        for name, make in SIGNALS.items():
            features = extractor(
                make(), sampling_rate=16_000, padding=False, return_tensors="np"
            ).input_features[0]
            references[f"{name}-{num_bins}"] = features[:, ::STEP].astype(np.float32)
    np.savez_compressed(PLACE, **references)


if __name__ == "__main__":
    main()
