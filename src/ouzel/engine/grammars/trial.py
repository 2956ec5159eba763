"""Compiles a grammar in a limited process first, where it can be stopped, and measures the cost.

A matcher cannot leave its process, so the engine then repeats the compilation.
"""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ouzel.engine.grammars.matcher import (
    MAX_MESSAGE_CHARS,
    STACK_BYTES,
    GrammarRefused,
    compile_matcher,
)
from ouzel.engine.grammars.native_memory import allocated_bytes
from ouzel.engine.grammars.tokenizer import GrammarTokenizer, TokenizerSource
from ouzel.limited_process import (
    ChildDied,
    JobFailed,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)

MAX_BYTES = 128 * 2**20  # the largest formats within our caps take 30 MiB

_MIN_BYTES = 256 * 2**10  # smallest size to charge for a matcher


class TrialTooLong(Exception):
    """Raised when a trial exceeds its CPU time."""


class TrialPutOff(Exception):
    """A trial did not end, for lack of a processor or of a process."""


class Trial(msgspec.Struct, frozen=True):
    """The cost of compiling a grammar, or the reason why it is refused, for all requests."""

    cpu_s: float
    num_bytes: int
    refusal: str | None = None

    @classmethod
    def refused(cls, why: str) -> "Trial":
        return cls(cpu_s=0.0, num_bytes=0, refusal=why[:MAX_MESSAGE_CHARS])


_decode_trial = msgspec.msgpack.Decoder(Trial).decode


class Trials:
    """Compiles grammars in a limited process and returns the cost or a refusal; thread-safe."""

    def __init__(self, source: TokenizerSource, max_bytes: int) -> None:
        options = {
            "path": str(source.path),
            "vocab_size": source.vocab_size,
            "eos_token_ids": source.eos_token_ids,
        }
        self._process = LimitedProcess(
            "ouzel.engine.grammars.trial:create_trial", options, _limits(5.0, max_bytes)
        )
        self._max_bytes = max_bytes

    def run(self, grammar: str, *, cpu_s: float) -> Trial:
        """Compiles a grammar in the limited process. Raises TrialTooLong and TrialPutOff."""
        try:
            return _decode_trial(
                self._process.run(grammar.encode(), _limits(cpu_s, self._max_bytes))
            )
        except TimeLimitExceeded as error:
            raise (TrialTooLong if error.is_cpu_time else TrialPutOff)(
                "compiling the grammar takes too long"
            ) from None
        except MemoryLimitExceeded:
            return Trial.refused(
                f"compiling the grammar takes more than {self._max_bytes // 2**20} MiB of memory"
            )
        except JobLost as error:
            raise TrialPutOff(str(error)) from None
        except (JobFailed, ChildDied) as error:
            return Trial.refused(f"the grammar cannot be compiled: {error}")

    def close(self) -> None:
        """Ends running trials, which raise TrialPutOff."""
        self._process.close()


def _limits(cpu_s: float, max_bytes: int) -> Limits:
    """Returns the limits of a trial.

    Long trials have a low priority and may wait for a processor.
    """
    return Limits(
        wall_s=10 + 4 * cpu_s, cpu_s=cpu_s, memory_bytes=max_bytes, stack_bytes=STACK_BYTES
    )


# In the limited process


def create_trial(path: str, vocab_size: int, eos_token_ids: list[int]) -> Callable[[bytes], bytes]:
    tokenizer = GrammarTokenizer(
        TokenizerSource(Path(path), vocab_size, tuple(eos_token_ids))
    ).native

    def try_grammar(grammar: bytes) -> bytes:
        before_s, before_bytes = time.process_time(), allocated_bytes()
        refusal = matcher = None
        try:
            matcher = compile_matcher(tokenizer, grammar.decode())
        except GrammarRefused as error:
            refusal = str(error)
        num_bytes = max(allocated_bytes() - before_bytes, _MIN_BYTES)
        del matcher
        return msgspec.msgpack.encode(Trial(time.process_time() - before_s, num_bytes, refusal))

    return try_grammar
