import os
import time
from collections.abc import Iterator

import numpy as np
import pytest

from ouzel.backends.openvino.weights.compress import cut
from ouzel.backends.openvino.weights.parallel import map_in_threads


def test_results_have_the_order_of_the_pieces() -> None:
    def compute_slowly_at_first(number: int) -> int:
        time.sleep(0.02 / (number + 1))
        return number * number

    assert list(map_in_threads(compute_slowly_at_first, range(20))) == [
        number * number for number in range(20)
    ]


def test_pieces_are_read_only_as_threads_need_them() -> None:
    taken: list[int] = []

    def pieces() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = map_in_threads(abs, pieces())
    next(results)
    assert len(taken) <= (os.cpu_count() or 1) + 1
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(taken) < 100


def test_an_error_of_a_piece_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_threads(lambda number: 1 // number, [2, 1, 0, 1]))


def test_an_error_of_the_iterator_is_raised() -> None:
    def pieces() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(map_in_threads(abs, pieces()))


def test_rows_are_divided_into_parts_for_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ouzel.backends.openvino.weights.compress.ENCODED_AT_ONCE", 24)
    chunks = [np.arange(80, dtype=np.float32).reshape(10, 8), np.zeros((1, 8), np.float32)]
    parts = list(cut(chunks))
    assert [len(part) for part in parts] == [3, 3, 3, 1, 1]
    np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(chunks))
    assert [len(part) for part in cut([np.zeros((2, 96), np.float32)])] == [1, 1]
