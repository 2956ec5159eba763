"""The workloads of all products, as records.

Prompts are rows of token ids, new ones in every round, so that a prefix cache or a prompt lookup
finds only text that the workload repeats on purpose. The model of `checkpoints.py` continues with
the number after the last one. So the answer to a prompt that holds a run of numbers, and ends where
the run began, is a copy of the run.
"""

import zlib
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

# Prompts have token ids between these, so their answers reach no special token.
FIRST_TOKEN_ID, END_TOKEN_ID = 1_000, 100_000

Chooser = Literal["greedy", "top_p", "schema"]
TEMPERATURE, TOP_P = 0.8, 0.95  # both for "top_p"; only the temperature for "schema"


@dataclass(frozen=True, slots=True)
class RandomText:
    """A text without repetitions."""


@dataclass(frozen=True, slots=True)
class CopiedText:
    """An answer that repeats the prompt, except one token in each `edit_every`; 0 means a copy."""

    edit_every: int = 0

    def __str__(self) -> str:
        return f"one token in {self.edit_every} changed" if self.edit_every else "a copy"


@dataclass(frozen=True, slots=True)
class Decode:
    """Decodes `output_len` tokens of `batch` sequences at once; the prompts are not timed."""

    batch: int
    context_len: int
    output_len: int
    chooser: Chooser = "greedy"
    text: RandomText | CopiedText = RandomText()

    @property
    def max_context_len(self) -> int:
        """Returns the longest context of a sequence.

        The first sequences go on while the prompts of the last ones are computed.
        """
        return self.context_len + 4 * self.output_len + 2 * self.batch


@dataclass(frozen=True, slots=True)
class Prefill:
    """Computes one prompt to its first token; the figure counts the prompt's tokens."""

    num_tokens: int


@dataclass(frozen=True, slots=True)
class Requests:
    """Runs `batch` requests that arrive at once; the figure counts the answers' tokens.

    The first `shared_len` tokens of the prompts are the same.
    """

    batch: int
    prompt_len: int
    output_len: int
    shared_len: int = 0


Workload = Decode | Prefill | Requests


def prompts(workload: Workload, seed: int) -> list[list[int]]:
    """Returns the token ids of each prompt; other workloads or seeds begin differently."""
    rng = np.random.default_rng([seed, zlib.crc32(repr(workload).encode())])
    match workload:
        case Decode(batch=batch, context_len=length, text=CopiedText(edit_every=edit_every)):
            return [_copy_with_edits(length, edit_every, rng) for _ in range(batch)]
        case Decode(batch=batch, context_len=length):
            return _random(batch, length, rng)
        case Prefill(num_tokens=length):
            return _random(1, length, rng)
        case Requests(batch=batch, prompt_len=length, shared_len=shared_len):
            [shared] = _random(1, shared_len, rng)
            return [shared + own for own in _random(batch, length - shared_len, rng)]
        case _:
            assert_never(workload)


def _random(batch: int, length: int, rng: np.random.Generator) -> list[list[int]]:
    rows: NDArray[np.int64] = rng.integers(FIRST_TOKEN_ID, END_TOKEN_ID, (batch, length))
    found: list[list[int]] = rows.tolist()
    return found


def _copy_with_edits(length: int, edit_every: int, rng: np.random.Generator) -> list[int]:
    """Returns a run of numbers with others strewn in, then the run's first number.

    The model then repeats the run.
    """
    first = int(rng.integers(FIRST_TOKEN_ID, END_TOKEN_ID - length))
    run = np.arange(first, first + length - 1)
    if edit_every:
        edited = np.arange(edit_every, len(run), edit_every)
        run[edited] = rng.integers(FIRST_TOKEN_ID, END_TOKEN_ID, len(edited))
    return [*run.tolist(), first]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    name: str
    workload: Workload


def _decodes(batches: tuple[int, ...], context_len: int, output_len: int) -> list[Row]:
    return [
        Row(f"decode, context {context_len}, batch {n}", Decode(n, context_len, output_len))
        for n in batches
    ]


def full_rows() -> list[Row]:
    """Returns the rows of the complete table."""
    return [
        *_decodes((1, 2, 4, 8, 16, 32), 32, 32),
        *_decodes((1, 2, 4, 8, 16, 32), 600, 32),
        *(Row(f"prefill {n}", Prefill(n)) for n in (512, 1024, 4096)),
        Row("32 requests that share 2,000 tokens", Requests(32, 2032, 16, 2000)),
        Row("temperature and top_p, batch 8", Decode(8, 32, 32, "top_p")),
        Row("temperature and top_p, batch 32", Decode(32, 32, 32, "top_p")),
        Row("JSON schema, batch 1", Decode(1, 32, 32, "schema")),
        Row("JSON schema, batch 8", Decode(8, 32, 32, "schema")),
        Row("JSON schema, batch 32", Decode(32, 32, 32, "schema")),
        Row("copy, batch 1", Decode(1, 600, 128, text=CopiedText())),
        Row("copy with one token in 12 changed, batch 1", Decode(1, 600, 128, text=CopiedText(12))),
        Row("copy with one token in 12 changed, batch 8", Decode(8, 600, 64, text=CopiedText(12))),
    ]


def quick_rows() -> list[Row]:
    """Returns the rows of --quick, which takes a few minutes with three products."""
    return [
        *_decodes((1, 8, 32), 32, 16),
        *_decodes((1,), 600, 16),
        Row("prefill 512", Prefill(512)),
        Row("prefill 1024", Prefill(1024)),
        Row("8 requests that share 512 tokens", Requests(8, 544, 8, 512)),
        Row("temperature and top_p, batch 8", Decode(8, 32, 16, "top_p")),
        Row("JSON schema, batch 8", Decode(8, 32, 16, "schema")),
        Row("copy, batch 1", Decode(1, 256, 64, text=CopiedText())),
        Row("copy with one token in 12 changed, batch 1", Decode(1, 256, 64, text=CopiedText(12))),
    ]
