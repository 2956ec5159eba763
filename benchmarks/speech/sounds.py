"""Finds the sound files of a run, and makes copies that no cache knows."""

import json
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_LONGEST_S = 30.0  # transformers reads one window


@dataclass(frozen=True, slots=True)
class SoundSet:
    """The files of a directory, with the texts of texts.json."""

    name: str
    references: dict[str, str]  # path -> text

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self.references)


def read_sets(directories: Sequence[Path]) -> list[SoundSet]:
    """Reads the WAV files of at most 30 s that have a text."""
    sets = []
    for directory in directories:
        texts = json.loads((directory / "texts.json").read_text())
        references = {
            str(directory / name): text
            for name, text in sorted(texts.items())
            if text and measure_seconds(directory / name) <= _LONGEST_S
        }
        sets.append(SoundSet(directory.name, references))
    return sets


def measure_seconds(file: Path | str) -> float:
    with wave.open(str(file)) as sound:
        return float(sound.getnframes() / sound.getframerate())


def copy_with_noise(file: Path | str, directory: Path, seed: int) -> str:
    """Copies a file of 16-bit samples; the lowest bits of some hundred samples are random."""
    with wave.open(str(file)) as sound:
        parameters = sound.getparams()
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2").copy()
    rng = np.random.default_rng(seed)
    samples[:: max(len(samples) // 500, 1)] ^= 1
    samples[rng.integers(0, len(samples), 500)] ^= 1
    path = directory / f"{seed}-{Path(file).name}"
    with wave.open(str(path), "wb") as copy:
        copy.setparams(parameters)
        copy.writeframes(samples.tobytes())
    return str(path)
