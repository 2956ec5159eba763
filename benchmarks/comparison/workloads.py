"""What every product is asked to do, as records.

Prompts are rows of token ids, other ones in every round, so that no prefix cache and no prompt lookup finds anything in
them but what a workload means to be found. The model of `checkpoints.py` goes on with the number after the last one,
so a prompt that holds a run of numbers and ends where the run began is one whose answer is a copy of it.
"""

import zlib
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

FIRST_TOKEN_ID, END_TOKEN_ID = (
    1_000,
    100_000,
)  # prompts lie between, and answers after them reach no special token

Chooser = Literal["greedy", "top_p", "schema"]
TEMPERATURE, TOP_P = 0.8, 0.95  # of "top_p"; of "schema" the temperature alone


@dataclass(frozen=True, slots=True)
class RandomText:
    """Nothing in it comes twice."""


@dataclass(frozen=True, slots=True)
class CopiedText:
    """The answer repeats the prompt, but for one token of each `edit_every`; 0: it is a copy of it."""

    edit_every: int = 0

    def __str__(self) -> str:
        return f"one token in {self.edit_every} changed" if self.edit_every else "a copy"


@dataclass(frozen=True, slots=True)
class Decode:
    """`batch` prompts are computed; then counted is the time for `output_len` tokens of each, all running at once."""

    batch: int
    context_len: int
    output_len: int
    chooser: Chooser = "greedy"
    text: RandomText | CopiedText = RandomText()

    @property
    def max_context_len(self) -> int:
        """The longest of a sequence: the first ones go on while the last ones' prompts are computed."""
        return self.context_len + 4 * self.output_len + 2 * self.batch


@dataclass(frozen=True, slots=True)
class Prefill:
    """One prompt, to its first token; the figure counts the prompt's tokens."""

    num_tokens: int


@dataclass(frozen=True, slots=True)
class Requests:
    """`batch` requests arrive at once and run to their ends; the figure counts the answers' tokens.

    The first `shared_len` tokens of the prompts are the same in all of them.
    """

    batch: int
    prompt_len: int
    output_len: int
    shared_len: int = 0


Workload = Decode | Prefill | Requests


def prompts(workload: Workload, seed: int) -> list[list[int]]:
    """Returns the token ids of each prompt: those of another workload or seed begin otherwise."""
    rng = np.random.default_rng([seed, zlib.crc32(repr(workload).encode())])
    match workload:
        case Decode(batch=batch, context_len=length, text=CopiedText(edit_every=edit_every)):
            return [_copied(length, edit_every, rng) for _ in range(batch)]
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


def _copied(length: int, edit_every: int, rng: np.random.Generator) -> list[int]:
    """A run of numbers with others strewn in, then the run's first number, after which the model repeats the run."""
    first = int(rng.integers(FIRST_TOKEN_ID, END_TOKEN_ID - length))
    run = np.arange(first, first + length - 1)
    if edit_every:
        edited = np.arange(edit_every, len(run), edit_every)
        run[edited] = rng.integers(FIRST_TOKEN_ID, END_TOKEN_ID, len(edited))
    return [*run.tolist(), first]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    name: str
    workload: Workload


def _decodes(batches: tuple[int, ...], context_len: int, output_len: int) -> list[Row]:
    return [
        Row(f"decode, context {context_len}, batch {n}", Decode(n, context_len, output_len))
        for n in batches
    ]


def full_rows() -> list[Row]:
    """The table of RESULTS.md."""
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
    """A few minutes with three products."""
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
