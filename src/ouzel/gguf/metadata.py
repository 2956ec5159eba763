"""Reads a GGUF file's metadata by key, with types and limits; each error names the key."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError

Value = int | float | bool | str | list[str] | NDArray[np.generic]


class Metadata:
    """Holds the metadata of a GGUF file. It remembers which keys were read.

    A key must be present if the default is None.
    """

    def __init__(self, values: Mapping[str, Value], source: str) -> None:
        self._values = values
        self.source = source
        self._read: set[str] = set()

    def unread(self) -> list[str]:
        return sorted(self._values.keys() - self._read)

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a string", value)
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(key, "an integer", value)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong(key, "a number", value)
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false", value)
        return value

    def texts(self, key: str) -> list[str]:
        value = self._get(key, None)
        if isinstance(value, np.ndarray) and not len(value):
            return []
        if not isinstance(value, list):
            raise self.wrong(key, "a list of strings", value)
        return value

    def array(self, key: str) -> NDArray[np.generic]:
        value = self._get(key, None)
        if not isinstance(value, np.ndarray):
            raise self.wrong(key, "a list of numbers", value)
        return value

    def numbers(self, key: str, length: int) -> list[float]:
        """Reads an array of `length` numbers; integers stay integers."""
        value = self._get(key, None)
        if not isinstance(value, np.ndarray) or len(value) != length:
            raise self.wrong(key, f"a list of {length} numbers", value)
        return list(value.tolist())

    def integers(self, key: str, length: int) -> list[int]:
        """Reads an array of `length` integers; a single integer stands for all elements."""
        value = self._get(key, None)
        if isinstance(value, np.ndarray):
            if len(value) != length or value.dtype.kind not in "iu":
                raise self.wrong(key, f"a list of {length} integers", value)
            return [int(item) for item in value]
        return [self.integer(key)] * length

    def integer_list(self, key: str, max_length: int) -> list[int]:
        value = self._get(key, None)
        if (
            not isinstance(value, np.ndarray)
            or not 0 < len(value) <= max_length
            or value.dtype.kind not in "iu"
        ):
            raise self.wrong(key, f"a list of 1 to {max_length} integers", value)
        return [int(item) for item in value]

    def wrong(self, key: str, expected: str, value: object) -> ModelLoadError:
        found = value.tolist()[:16] if isinstance(value, np.ndarray) else value
        return ModelLoadError(f"{self.source}: {key} must be {expected}, found {brief(found)}")

    def _get(self, key: str, default: Value | None) -> Value:
        self._read.add(key)
        value = self._values.get(key, default)
        if value is None:
            raise ModelLoadError(f"{self.source}: {key} is missing")
        return value
