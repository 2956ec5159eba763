"""Reads the facts about a model from a GGUF file: keys `<architecture>.<key>`, and its tensors."""

import numpy as np

from ouzel.errors import ModelLoadError
from ouzel.gguf.file import Gguf

# Keys that repeat facts from tensors, that tell how the file was made, or that pooling.py reads.
_HARMLESS = (
    *("vocab_size", "rope.scaling.finetuned", "tensor_data_layout"),
    *("pooling_type", "classifier.output_labels"),
)

MAX_LAYERS = 1024  # several times as many as in any published model


class Facts:
    """Reads the metadata `<architecture>.<key>` of a GGUF file; remembers which keys were read."""

    def __init__(self, gguf: Gguf) -> None:
        self._gguf = gguf
        self._metadata = gguf.metadata
        self.architecture = gguf.metadata.text("general.architecture")
        self.source = gguf.metadata.source

    @property
    def num_blocks(self) -> int:
        """Returns the number of layers in the file, with layers that predict further tokens."""
        if not 0 < (count := self.integer("block_count")) <= MAX_LAYERS:
            raise ModelLoadError(
                f"{self.source}: {self._key('block_count')} must be "
                f"1 to {MAX_LAYERS}, found {count}"
            )
        return count

    @property
    def num_layers(self) -> int:
        """Returns the number of layers of the model, without layers that predict further tokens."""
        return self.num_blocks - self.integer("nextn_predict_layers", 0)

    def has(self, key: str) -> bool:
        return self._metadata.has(self._key(key))

    def integer(self, key: str, default: int | None = None) -> int:
        return self._metadata.integer(self._key(key), default)

    def integers(self, key: str, length: int) -> list[int]:
        return self._metadata.integers(self._key(key), length)

    def integer_list(self, key: str, max_length: int) -> list[int]:
        """Reads an array of integers of any length up to `max_length`."""
        return self._metadata.integer_list(self._key(key), max_length)

    def numbers(self, key: str, length: int) -> list[float]:
        return self._metadata.numbers(self._key(key), length)

    def decimals(self, key: str, length: int) -> list[float]:
        """Reads an array of numbers, float32 as the shortest decimal notation."""
        return [float(str(np.float32(number))) for number in self.numbers(key, length)]

    def flags(self, key: str, length: int) -> list[bool]:
        return [bool(value) for value in self._metadata.numbers(self._key(key), length)]

    def numbers_by_layer(self, key: str) -> list[float]:
        """Reads a number for each layer; the key stands without the name of the architecture."""
        return self._metadata.numbers(key, self.num_layers)

    def number(self, key: str, default: float | None = None) -> float:
        return self._metadata.number(self._key(key), default)

    def flag(self, key: str, default: bool | None = None) -> bool:
        return self._metadata.flag(self._key(key), default)

    def text(self, key: str, default: str | None = None) -> str:
        return self._metadata.text(self._key(key), default)

    def has_tensor(self, name: str) -> bool:
        return name in self._gguf.tensors

    def tensor_shape(self, name: str) -> tuple[int, ...]:
        if name not in self._gguf.tensors:
            raise ModelLoadError(f"{self.source}: tensor {name} is missing")
        return self._gguf.tensors[name].shape

    def matrix_shape(self, name: str) -> tuple[int, int]:
        shape = self.tensor_shape(name)
        if len(shape) != 2:
            raise ModelLoadError(
                f"{self.source}: tensor {name} must have 2 dimensions, found {list(shape)}"
            )
        return shape[0], shape[1]

    def floats(self, name: str) -> list[float]:
        return self._gguf.floats(name)

    def refuse_unread(self, harmless: tuple[str, ...] = _HARMLESS) -> None:
        """Raises ModelLoadError if the file has a key of the architecture that was not read.

        `harmless` are keys that need not be read, and prefixes, which end with a dot.
        """
        known = {self._key(key) for key in harmless}
        prefixes = tuple(key for key in known if key.endswith("."))
        unread = [
            key
            for key in self._metadata.unread()
            if key.startswith(self._key("")) and key not in known and not key.startswith(prefixes)
        ]
        if unread:
            raise ModelLoadError(
                f"{self.source}: {unread[0]} is not supported for {self.architecture}"
            )

    def _key(self, key: str) -> str:
        return f"{self.architecture}.{key}"
