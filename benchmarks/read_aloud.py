"""Compares how Ouzel and kokoro-onnx read texts aloud.

    uv run python -m benchmarks.read_aloud --model DIRECTORY --peer-python PYTHON
        [--judge MODEL] [--rounds 3]

DIRECTORY has one ONNX file and `voices/*.bin`; PYTHON has kokoro-onnx. Both read the same file with
the same voice, in turns; each text is a request of its own. Ouzel is asked over HTTP. The Whisper
model MODEL tells the words that it hears in the sound.
"""

import argparse
import io
import json
import subprocess
import tempfile
import time
import wave
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from benchmarks.comparison.figures import Spread
from benchmarks.server import running_server
from benchmarks.speech.texts import measure_error_rate

PEER_PROGRAM = Path(__file__).with_name("read_aloud_peer.py")
VOICE, RATE = "af_heart", 24_000
AT_ONCE = 4
TEXTS = (
    "The dipper is a small bird that walks under water. It lives at fast streams in the hills, "
    "and it builds its nest behind waterfalls. In winter it stays there, as long as the water is "
    "free of ice. Its song is loud, because the stream is loud as well.",
    "Thank you for your message. I have read the report, and I agree with most of it. Could you "
    "send me the figures for the last quarter before Friday? Then we can finish the plan together.",
    "A server that answers at once feels better than one that answers well but late. So the first "
    "sentence is spoken while the second one is still being thought about.",
    "Good morning.",
    "She opened the old wooden door, looked into the garden, and saw that somebody had watered all "
    "the flowers during the night; the footprints led to the river and ended there.",
)


@dataclass(frozen=True, slots=True)
class Spoken:
    first_s: float  # until the first sound
    total_s: float
    samples: bytes  # 16-bit integers

    @property
    def sound_s(self) -> float:
        return len(self.samples) / 2 / RATE


@dataclass(slots=True)
class Figures:
    work: list[float] = field(default_factory=list)  # seconds for a second of sound, all texts
    first: list[float] = field(default_factory=list)  # seconds to the first sound of a long text
    crowd: list[float] = field(
        default_factory=list
    )  # seconds for a second of sound, several at once
    error_rate: float | None = None


class Ouzel:
    def __init__(self, url: str) -> None:
        self._url = url

    def speak(self, text: str) -> Spoken:
        body = {"input": text, "voice": VOICE, "response_format": "pcm"}
        begin, first_s, pieces = time.perf_counter(), 0.0, []
        with httpx.stream(
            "POST", f"{self._url}/v1/audio/speech", json=body, timeout=None
        ) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():
                first_s = first_s or time.perf_counter() - begin
                pieces.append(piece)
        return Spoken(first_s, time.perf_counter() - begin, b"".join(pieces))


class Peer:
    """kokoro-onnx in another interpreter, with a thread for each request."""

    def __init__(self, python: str, model: Path, voices: Path) -> None:
        command = [python, str(PEER_PROGRAM), str(model), str(voices)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ask([])

    def speak_all(self, texts: Sequence[str]) -> list[Spoken]:
        return [
            Spoken(first_s, total_s, bytes.fromhex(samples))
            for first_s, total_s, samples in self._ask(texts)
        ]

    def speak(self, text: str) -> Spoken:
        [spoken] = self.speak_all([text])
        return spoken

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, texts: Sequence[str]) -> list[tuple[float, float, str]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(texts) + "\n")
        self._process.stdin.flush()
        answer: list[tuple[float, float, str]] = json.loads(self._process.stdout.readline())
        return answer


def speak_at_once(program: Ouzel | Peer, texts: Sequence[str]) -> list[Spoken]:
    if isinstance(program, Peer):
        return program.speak_all(texts)
    with ThreadPoolExecutor(len(texts)) as pool:
        return list(pool.map(program.speak, texts))


def measure(
    programs: dict[str, Ouzel | Peer], rounds: int
) -> tuple[dict[str, Figures], dict[str, list[Spoken]]]:
    """Runs the programs in turns; a first round is not counted."""
    figures = {name: Figures() for name in programs}
    spoken: dict[str, list[Spoken]] = {}
    for number in range(rounds + 1):
        for name in list(programs)[:: 1 if number % 2 else -1]:
            found = [programs[name].speak(text) for text in TEXTS]
            begin = time.perf_counter()
            crowd = speak_at_once(programs[name], TEXTS[:1] * AT_ONCE)
            crowd_s = time.perf_counter() - begin
            spoken[name] = found
            if number:
                own = figures[name]
                own.work.append(sum(x.total_s for x in found) / sum(x.sound_s for x in found))
                own.first.append(found[0].first_s)
                own.crowd.append(crowd_s / sum(x.sound_s for x in crowd))
    return figures, spoken


def judge(model: str, spoken: dict[str, list[Spoken]]) -> dict[str, float]:
    """Returns the share of wrong words that the Whisper model hears, by program."""
    with running_server([model]) as (url, _):
        return {
            name: measure_error_rate(
                {text: _transcribe(url, each) for text, each in zip(TEXTS, found, strict=True)},
                {text: text for text in TEXTS},
            )
            for name, found in spoken.items()
        }


def _transcribe(url: str, spoken: Spoken) -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(spoken.samples)
    answer = httpx.post(
        f"{url}/v1/audio/transcriptions",
        files={"file": ("speech.wav", file.getvalue())},
        data={"language": "en"},
        timeout=None,
    )
    text: str = answer.raise_for_status().json()["text"]
    return text


def write_table(figures: dict[str, Figures]) -> list[str]:
    lines = [
        "| | seconds for a second of sound | first sound | "
        f"{AT_ONCE} texts at once, for a second of sound | wrong words |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, own in figures.items():
        rate = "" if own.error_rate is None else f"{own.error_rate:.1%}"
        cells = [_write(own.work, 3), f"{_write(own.first, 2)} s", _write(own.crowd, 3), rate]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    ours, theirs = figures.values()
    ratios = [
        Spread.of([b / a for a, b in zip(getattr(ours, key), getattr(theirs, key), strict=True)])
        for key in ("work", "first", "crowd")
    ]
    cells = [f"**{each.median:.2f}**, {each.low:.2f} to {each.high:.2f}" for each in ratios]
    return [*lines, f"| **Ouzel is** | {' | '.join(cells)} | |"]


def _write(figures: Sequence[float], digits: int) -> str:
    return f"{Spread.of(figures).median:.{digits}f}"


@contextmanager
def opened_peer(python: str, model: Path) -> Iterator[Peer]:
    [file] = sorted(model.glob("*.onnx")) or sorted(model.glob("onnx/*.onnx"))
    with tempfile.TemporaryDirectory() as directory:
        voices = Path(directory) / "voices.npz"
        voice = np.fromfile(model / "voices" / f"{VOICE}.bin", "<f4").reshape(-1, 1, 256)
        np.savez(voices, allow_pickle=False, **{VOICE: voice})
        peer = Peer(python, file, voices)
        try:
            yield peer
        finally:
            peer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--judge")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with (
        running_server([str(given.model)]) as (url, _),
        opened_peer(given.peer_python, given.model) as peer,
    ):
        figures, spoken = measure({"Ouzel": Ouzel(url), "kokoro-onnx": peer}, given.rounds)
    if given.judge:
        for name, rate in judge(given.judge, spoken).items():
            figures[name].error_rate = rate
    print("\n".join(write_table(figures)))


if __name__ == "__main__":
    main()
