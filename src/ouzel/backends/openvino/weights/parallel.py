"""Pieces of a matrix are computed on all cores, in their order, while the thread that asks reads
and writes others.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# more cores would wait for the one that reads and writes, and each holds pieces in memory
MAX_THREADS = 8


def map_in_threads(
    function: Callable[[Piece], Result], pieces: Iterable[Piece]
) -> Iterator[Result]:
    """Gives what `map` does, for functions that work without the interpreter's lock, as numpy's do.

    Pieces are taken a few ahead of what is given. Raises what the function or the pieces raise.
    """
    num_threads = min(os.cpu_count() or 1, MAX_THREADS)
    computed: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(num_threads, "compress") as threads:
        for piece in pieces:
            computed.append(threads.submit(function, piece))
            if len(computed) > num_threads:
                yield computed.popleft().result()
        while computed:
            yield computed.popleft().result()
