"""Runs a Kokoro model: phonemes and a voice in, samples of sound out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.speaking.graph import SpeakingPorts
from ouzel.engine.base import PoolingBatch
from ouzel.pooling import Voice
from ouzel.types.engine_info import EngineInfo

_PADDING = 0  # the id before and after the phonemes


class SpeakingRunner:
    """Speaks one text after another; implements `PoolingRunner`."""

    def __init__(
        self,
        compiled: ov.CompiledModel,
        ports: SpeakingPorts,
        tables: Sequence[NDArray[np.float32]],
        info: EngineInfo,
    ) -> None:
        """`tables` are the voices [rows, 256] in the order of `info.speech.voices`."""
        self.info = info
        self._ports = ports
        self._tables = tables
        self._request = GraphRequest(compiled)
        self._types = {
            name: compiled.input(name).get_element_type().to_dtype()
            for name in (ports.tokens, ports.style, ports.speed)
        }
        self._speed_shape = [1] * len(compiled.input(ports.speed).get_partial_shape())

    def run(self, batch: PoolingBatch) -> list[NDArray[np.float32]]:
        texts = np.split(batch.token_ids, batch.begins[1:-1])
        results = []
        for token_ids, voice in zip(texts, batch.voices, strict=True):
            assert voice is not None, "the engine has checked the voice"
            results.append(self._speak(token_ids, voice))
        return results

    def _speak(self, token_ids: NDArray[np.int64], voice: Voice) -> NDArray[np.float32]:
        """Returns the samples [T] of one text."""
        row = len(token_ids) - 1
        style = sum(weight * self._tables[index][row] for index, weight in voice.voices)
        values: dict[str, NDArray[np.generic]] = {
            self._ports.tokens: np.pad(token_ids, 1, constant_values=_PADDING)[None],
            self._ports.style: np.asarray(style)[None],
            self._ports.speed: np.full(self._speed_shape, voice.speed),
        }
        self._request.run(
            {name: np.ascontiguousarray(value, self._types[name]) for name, value in values.items()}
        )
        samples = self._request.output(self._ports.sound)
        return np.clip(samples.reshape(-1), -1, 1).astype(np.float32)  # a copy

    def close(self) -> None:
        """Frees the memory; the runner cannot be used afterwards."""
        del self._request, self._tables
