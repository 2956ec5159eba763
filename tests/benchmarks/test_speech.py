"""The comparison of speech-to-text: errors of words, times of words, orders, files of a round."""

import wave
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speech.accuracy import list_differences, list_word_times, write_word_times
from benchmarks.speech.sounds import copy_with_noise, measure_seconds
from benchmarks.speech.task import Heard, SpokenWord, Task, read_task, write_task
from benchmarks.speech.texts import count_errors, measure_error_rate, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ask not -- ask!", ["ask", "not", "ask"]),
        ("It’s 'quoted', rock'n'roll.", ["it's", "quoted", "rock'n'roll"]),
        ("Press 10, or ten; déjà_vu", ["press", "10", "or", "ten", "déjà", "vu"]),
        (" ... ", []),
    ],
)
def test_punctuation_and_case_are_no_part_of_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_replaced_missing_and_additional_words_are_errors() -> None:
    reference = split_words("the cat sat on the mat")

    assert count_errors(reference, reference) == 0
    assert count_errors(split_words("the dog sat on the mat"), reference) == 1
    assert count_errors(split_words("the sat on the mat"), reference) == 1
    assert count_errors(split_words("the cat sat on on the mat"), reference) == 1
    assert count_errors([], reference) == 6


def test_the_error_rate_is_of_all_words_together() -> None:
    heard = {"a.wav": "One two", "b.wav": "three four five six"}
    references = {"a.wav": "one too.", "b.wav": "Three four, five six!"}

    assert measure_error_rate(heard, references) == pytest.approx(1 / 6)


def make_heard(*starts_s: float) -> Heard:
    words = [SpokenWord(f" w{place}", start, start + 0.5) for place, start in enumerate(starts_s)]
    return Heard("".join(word.text for word in words), tuple(words))


def test_times_are_compared_where_the_words_are_equal() -> None:
    found = {
        "ours": {"a": make_heard(0.0, 1.0, 2.0), "b": make_heard(0.0)},
        "theirs": {"a": make_heard(0.0, 1.02, 2.2), "b": make_heard(5.0, 6.0)},
    }

    [*_, row] = write_word_times(found, "ours")

    assert row.startswith("| theirs | 3 | 20 ms |")
    assert list_word_times(found, "ours", "theirs") == [
        "a ' w2': 2.00 to 2.50, theirs: 2.20 to 2.70"
    ]
    assert [line.split(":")[0] for line in list_differences(found, "ours", "theirs")] == [
        "b",
        "  ours",
        "  theirs",
    ]


def test_a_task_is_one_line() -> None:
    task = Task(files=("a.wav", "b.wav"), has_words=True, num_chunks=8)

    line = write_task(task)

    assert line.count("\n") == 1
    assert read_task(line) == task


def test_each_round_has_other_samples_of_the_same_sound(tmp_path: Path) -> None:
    source = tmp_path / "sound.wav"
    samples = np.arange(16_000, dtype="<i2")
    with wave.open(str(source), "wb") as sound:
        sound.setparams((1, 2, 16_000, 0, "NONE", "not compressed"))
        sound.writeframes(samples.tobytes())

    copies = [copy_with_noise(source, tmp_path, seed) for seed in (1, 2)]

    assert Path(copies[0]).read_bytes() != Path(copies[1]).read_bytes()
    for copy in copies:
        assert measure_seconds(copy) == 1.0
        with wave.open(copy) as sound:
            changed = np.frombuffer(sound.readframes(16_000), "<i2")
        assert 0 < np.abs(changed.astype(int) - samples).max() <= 1
