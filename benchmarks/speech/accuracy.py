"""Measures the word error rates of all programs, and the times of words."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.speech.programs import Opening
from benchmarks.speech.sounds import SoundSet
from benchmarks.speech.task import Heard, SpokenWord, Task
from benchmarks.speech.texts import measure_error_rate, split_words

Openings = Mapping[str, Callable[[], Opening]]
Transcripts = dict[str, dict[str, Heard]]  # name of the program -> file -> transcript


def transcribe_all(
    openings: Openings, files: Sequence[str], tasks: Mapping[str, Task]
) -> dict[str, Transcripts]:
    """Runs all tasks with each program, one program after the other; returns them by task."""
    found: dict[str, Transcripts] = {title: {} for title in tasks}
    for name, opening in openings.items():
        with opening() as program:
            for title, task in tasks.items():
                before = time.perf_counter()
                answer = program.run(replace(task, files=tuple(files)))
                seconds = time.perf_counter() - before
                print(f"{name}, {title}: {seconds:.1f} s", file=sys.stderr, flush=True)
                found[title][name] = dict(zip(files, answer.heard, strict=True))
    return found


def write_error_rates(found: Transcripts, sets: Sequence[SoundSet]) -> list[str]:
    """Returns the rows of a table: a program, its error rate in each set, and in all of them."""
    every = {file: text for each in sets for file, text in each.references.items()}
    parts = [*((each.name, each.references) for each in sets), ("all", every)]
    counts = [sum(len(split_words(text)) for text in texts.values()) for _, texts in parts]
    heads = [f"{name}, {count:,} words" for (name, _), count in zip(parts, counts, strict=True)]
    lines = [f"| | {' | '.join(heads)} |", "|---" + "|---:" * len(parts) + "|"]
    for name, heard in found.items():
        texts = {file: each.text for file, each in heard.items()}
        rates = [measure_error_rate(texts, references) for _, references in parts]
        lines.append(f"| {name} | {' | '.join(f'{rate:.2%}' for rate in rates)} |")
    return lines


def list_differences(found: Transcripts, own: str, other: str) -> list[str]:
    """Returns the transcripts whose words differ between two programs."""
    lines = []
    for file, heard in found[own].items():
        theirs = found[other][file]
        if split_words(heard.text) != split_words(theirs.text):
            lines += [file, f"  {own}: {heard.text}", f"  {other}: {theirs.text}"]
    return lines


def write_word_times(found: Transcripts, own: str) -> list[str]:
    """Returns the rows of a table: differences of a program's word times from the other ones."""
    lines = [
        f"| {own} against | words | starts, median | 95 % | ends, median | 95 % | over 0.1 s |",
        "|---" + "|---:" * 6 + "|",
    ]
    for name, transcripts in found.items():
        pairs = [
            pair for file in transcripts for pair in _pair(found[own][file], transcripts[file])
        ]
        if name == own or not pairs:
            continue
        starts = np.array([abs(mine.start_s - theirs.start_s) for mine, theirs in pairs])
        ends = np.array([abs(mine.end_s - theirs.end_s) for mine, theirs in pairs])
        figures = [
            f"{1000 * np.quantile(each, share):.0f} ms"
            for each in (starts, ends)
            for share in (0.5, 0.95)
        ]
        far = float(np.mean(np.concatenate([starts, ends]) > 0.1))
        lines.append(f"| {name} | {len(pairs):,} | {' | '.join(figures)} | {far:.1%} |")
    return lines


def list_word_times(found: Transcripts, own: str, other: str, far_s: float = 0.1) -> list[str]:
    """Returns the words whose times differ by more than `far_s` between two programs."""
    lines = []
    for file, heard in found[own].items():
        for mine, theirs in _pair(heard, found[other][file]):
            apart = max(abs(mine.start_s - theirs.start_s), abs(mine.end_s - theirs.end_s))
            if apart > far_s:
                lines.append(
                    f"{file} {mine.text!r}: {mine.start_s:.2f} to {mine.end_s:.2f}, "
                    f"{other}: {theirs.start_s:.2f} to {theirs.end_s:.2f}"
                )
    return lines


def _pair(mine: Heard, theirs: Heard) -> list[tuple[SpokenWord, SpokenWord]]:
    """Pairs the words of two transcripts with equal texts; other transcripts have no pairs."""
    own, other = ([each.text.strip() for each in heard.words] for heard in (mine, theirs))
    return list(zip(mine.words, theirs.words, strict=True)) if own == other else []
