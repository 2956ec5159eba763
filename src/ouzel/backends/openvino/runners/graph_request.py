"""Runs a compiled graph with inputs set by name, without copying arrays."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov


class GraphRequest:
    """A compiled graph with its inputs; runs one `infer` at a time."""

    def __init__(
        self, compiled: ov.CompiledModel, tables: Mapping[str, ov.Tensor] | None = None
    ) -> None:
        """Sets the inputs that are the same in every step: `tables`, by name.

        `tables` may have inputs of other graphs; this graph's request leaves them out.
        """
        self._request = compiled.create_infer_request()
        self._arrays: list[NDArray[np.generic]] = []  # the inputs, which the request only points to
        # The request sets inputs by index, a third of a millisecond a step faster than by name.
        # An input has several names if the compiler has removed a node behind it.
        self._indices = {
            name: index for index, port in enumerate(compiled.inputs) for name in port.get_names()
        }
        for name, tensor in (tables or {}).items():
            if name in self._indices:
                self._request.set_tensor(name, tensor)

    def has_input(self, name: str) -> bool:
        return name in self._indices

    def keep(self, name: str, tensor: ov.Tensor) -> None:
        """Sets an input that stays until it is set again."""
        self._request.set_input_tensor(self._indices[name], tensor)

    def run(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        for name, array in arrays.items():
            self._request.set_input_tensor(
                self._indices[name], ov.Tensor(array, shared_memory=True)
            )
        self._arrays = list(arrays.values())
        self._request.infer(share_outputs=True, decode_strings=False)  # releases the GIL

    def output(self, index: int = 0) -> NDArray[np.float32]:
        """Returns a view of an output that is not empty, valid until the next run.

        openvino cannot show an empty output as an array.
        """
        output: NDArray[np.float32] = self._request.get_output_tensor(index).data
        return output
