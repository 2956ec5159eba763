"""Pronounces lines of text by the command espeak-ng, in a process of its own.

espeak-ng writes a line of phonemes for each line of text without punctuation. It reads its standard
input, so a text is never an argument and never meets a shell.
"""

import logging
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouzel.phonemes.errors import PronunciationFailed

logger = logging.getLogger(__name__)

COMMAND = "espeak-ng"
TIE = "^"  # joins the two characters of a diphthong or an affricate
_MAX_BATCH_CHARS = 4000
# A word of another language is marked, "(en)fˈʊtbɔːl(fr)", with ties "(^e^n)".
_SWITCH = re.compile(r"\((?:\^?[a-z0-9-]){2,24}\)")


@dataclass(frozen=True, slots=True)
class EspeakCommand:
    """Runs espeak-ng with one voice. Threads may share it."""

    path: str
    voice: str
    time_limit_s: float = 30.0  # limit of a batch, which takes about 0.3 s on an idle core

    def pronounce(self, lines: Sequence[str]) -> list[str]:
        """Returns the phonemes of each line, in the International Phonetic Alphabet.

        Lines have letters, digits and spaces; a mark of punctuation would divide a line. Raises
        PronunciationFailed.
        """
        found: list[str] = []
        for batch in _divide(lines):
            answers = self._run(batch)
            if len(answers) != len(batch):  # espeak-ng divided a line
                answers = [" ".join(self._run([line])) for line in batch]
            found += answers
        return found

    def _run(self, lines: Sequence[str]) -> list[str]:
        """Returns the lines of the answer without empty lines."""
        try:
            done = subprocess.run(
                [self.path, "-q", "--ipa", f"--tie={TIE}", "-v", self.voice],
                input="\n".join(lines) + "\n",
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                errors="replace",
                timeout=self.time_limit_s,
                check=True,
            )
        except subprocess.TimeoutExpired as error:
            message = f"{COMMAND} did not pronounce the text within {self.time_limit_s:g} s"
            raise PronunciationFailed(message) from error
        except subprocess.CalledProcessError as error:
            message = f"{COMMAND} has no voice {self.voice}, or ended with {error.returncode}"
            raise PronunciationFailed(message) from error
        except OSError as error:
            raise PronunciationFailed(f"{COMMAND} could not be started: {error}") from error
        answers = (_SWITCH.sub("", line).strip() for line in done.stdout.splitlines())
        return [answer for answer in answers if answer]


def find_espeak(voice: str) -> EspeakCommand | None:
    """Returns the command on the PATH, or None if it is not installed."""
    path = shutil.which(COMMAND)
    return None if path is None else EspeakCommand(path, voice)


def _divide(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yields the lines in batches of at most _MAX_BATCH_CHARS, or of one longer line."""
    batch: list[str] = []
    num_chars = 0
    for line in lines:
        if batch and num_chars + len(line) > _MAX_BATCH_CHARS:
            yield batch
            batch, num_chars = [], 0
        batch.append(line)
        num_chars += len(line)
    if batch:
        yield batch
