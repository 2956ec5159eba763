"""Runs a voice detector, which rates frames of sound, in this process and on one thread.

The model is `silero_vad_16k_sequence.onnx` of the package silero-vad (MIT). It reads frames with
the end of the frame before them, and carries the state of a recurrent layer (`h` and `c`) on.
"""

from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.errors import ModelLoadError

_FRAME_SAMPLES = 512
_CONTEXT_SAMPLES = 64  # the end of the frame before
_STATE_SIZE = 128
_BLOCK_FRAMES = 256
_INPUTS = {"input", "h", "c"}
_OUTPUTS = {"speech_probs", "hn", "cn"}


class VoiceDetector:
    """Holds the compiled model, which the streams of all sounds share. Many threads call it."""

    frame_samples = _FRAME_SAMPLES

    def __init__(self, path: Path) -> None:
        """Raises ModelLoadError if the file is no such model."""
        compiled = _compile(path)
        self._request = compiled.create_infer_request()
        self._lock = Lock()

    def start(self) -> "VoiceStream":
        """Returns the stream of one sound at 16 kHz."""
        return VoiceStream(self)

    def run(
        self, inputs: NDArray[np.float32], h: NDArray[np.float32], c: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Returns the probabilities [frames] and the states after the frames.

        `inputs` are frames with their context, [frames, 576]; the states are [1, 1, 128].
        """
        with self._lock:
            self._request.infer({"input": inputs, "h": h, "c": c})
            probabilities, h, c = (
                self._request.get_tensor(name).data.copy() for name in ("speech_probs", "hn", "cn")
            )
        return probabilities.reshape(-1), h, c


class VoiceStream:
    """Rates the frames of one sound, in order."""

    def __init__(self, detector: VoiceDetector) -> None:
        self._detector = detector
        self._context = np.zeros(_CONTEXT_SAMPLES, np.float32)
        self._h = np.zeros((1, 1, _STATE_SIZE), np.float32)
        self._c = np.zeros((1, 1, _STATE_SIZE), np.float32)

    def rate(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the probability of speech in each frame: [frames * 512] -> [frames]."""
        values = np.empty(len(samples) // _FRAME_SAMPLES, np.float32)
        for begin in range(0, len(values), _BLOCK_FRAMES):
            end = min(begin + _BLOCK_FRAMES, len(values))
            block = samples[begin * _FRAME_SAMPLES : end * _FRAME_SAMPLES]
            values[begin:end] = self._rate_block(block.reshape(-1, _FRAME_SAMPLES))
        return values

    def _rate_block(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        inputs = np.empty((len(frames), _CONTEXT_SAMPLES + _FRAME_SAMPLES), np.float32)
        inputs[0, :_CONTEXT_SAMPLES] = self._context
        inputs[1:, :_CONTEXT_SAMPLES] = frames[:-1, -_CONTEXT_SAMPLES:]
        inputs[:, _CONTEXT_SAMPLES:] = frames
        self._context = frames[-1, -_CONTEXT_SAMPLES:].copy()
        values, self._h, self._c = self._detector.run(inputs, self._h, self._c)
        return values


def _compile(path: Path) -> ov.CompiledModel:
    core = ov.Core()
    try:
        model = core.read_model(path)
    except RuntimeError as error:
        raise ModelLoadError(
            f"vad_model: {path} is no ONNX file that can be read: {error}"
        ) from error
    inputs = {name for each in model.inputs for name in each.names}
    outputs = {name for each in model.outputs for name in each.names}
    if not (inputs >= _INPUTS and outputs >= _OUTPUTS):
        raise ModelLoadError(
            f"vad_model: {path} must be silero_vad_16k_sequence.onnx of the package silero-vad, "
            f"with the inputs {', '.join(sorted(_INPUTS))}; it has {', '.join(sorted(inputs))}"
        )
    options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    return core.compile_model(model, "CPU", options)
