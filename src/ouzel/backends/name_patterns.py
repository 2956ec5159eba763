"""Matches regular expressions of a checkpoint in a process with limits.

Some expressions take for ever on a short name. The process imports this file, so this file imports
little.
"""

import json
import re
from collections.abc import Callable, Collection

from ouzel.errors import ModelLoadError
from ouzel.limited_process import JobEnded, JobFailed, LimitedProcess, Limits, TimeLimitExceeded

# an ordinary pattern and a million names take a second
LIMITS = Limits(wall_s=100.0, cpu_s=10.0, memory_bytes=2**30)


def names_by_pattern(
    patterns: Collection[str], names: Collection[str], place: str
) -> dict[str, frozenset[str]]:
    """Returns the names that match each pattern at their start.

    ModelLoadError names the `place`.
    """
    if not patterns:
        return {}
    ordered = sorted(names)
    process = LimitedProcess("ouzel.backends.name_patterns:create_matcher", {}, LIMITS)
    try:
        found = json.loads(process.run(json.dumps([list(patterns), ordered]).encode()))
    except TimeLimitExceeded as error:
        raise ModelLoadError(
            f"{place}: matching its patterns takes longer than {LIMITS.cpu_s} s"
        ) from error
    except JobFailed as error:
        raise ModelLoadError(f"{place}: {error}") from error
    except JobEnded as error:
        raise ModelLoadError(f"{place}: its patterns could not be matched: {error}") from error
    finally:
        process.close()
    return {
        pattern: frozenset(ordered[i] for i in indices)
        for pattern, indices in zip(patterns, found, strict=True)
    }


def create_matcher() -> Callable[[bytes], bytes]:
    return _match


def _match(job: bytes) -> bytes:
    patterns, names = json.loads(job)
    return json.dumps([_matching(pattern, names) for pattern in patterns]).encode()


def _matching(pattern: str, names: list[str]) -> list[int]:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern[:80]} is not a regular expression: {error}") from error
    return [index for index, name in enumerate(names) if compiled.match(name)]
