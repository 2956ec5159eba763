"""A compiled graph is run with inputs set by name, and nothing is copied."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov


class GraphRequest:
    """One `infer` at a time."""

    def __init__(
        self, compiled: ov.CompiledModel, tables: Mapping[str, ov.Tensor] | None = None
    ) -> None:
        """`tables` are inputs that stay; those that this graph does not have are other graphs'."""
        self._request = compiled.create_infer_request()
        self._arrays: list[NDArray[np.generic]] = []  # the inputs, which the request only points to
        # Inputs are told apart by name, once: setting them by index is faster by a third of a
        # millisecond a step.
        self._indices = {port.get_any_name(): index for index, port in enumerate(compiled.inputs)}
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
        self._request.infer(share_outputs=True, decode_strings=False)  # without the GIL

    def output(self, index: int = 0) -> NDArray[np.float32]:
        """Returns a view, valid until the next run. Not of an empty output, which openvino cannot
        show.
        """
        output: NDArray[np.float32] = self._request.get_output_tensor(index).data
        return output
