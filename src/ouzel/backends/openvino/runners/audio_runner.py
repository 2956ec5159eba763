"""Runs an audio encoder part by part, and writes its features into slots of the decoder's cache."""

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.cross_attention import ALIGNMENT_KEYS, FRAMES
from ouzel.backends.openvino.graph.vision import ROWS
from ouzel.backends.openvino.graph.whisper import MEL
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.alignment import align_tokens
from ouzel.backends.openvino.runners.cross_slots import CrossSlots
from ouzel.backends.openvino.runners.graph_request import GraphRequest
from ouzel.backends.openvino.speech_model import SpeechModel
from ouzel.types.engine_info import AudioShape
from ouzel.types.engine_request import AudioInput

Array = NDArray[np.float32]


class AudioRunner:
    """Runs the compiled parts; it owns them, the arrays that they point into, and the slots."""

    def __init__(
        self,
        parts: Sequence[ov.CompiledModel],
        filling: ov.CompiledModel,
        speech: SpeechModel,
        slots: CrossSlots,
    ) -> None:
        self.slots = slots
        self._speech = speech
        self._parts = [GraphRequest(part) for part in parts]
        self._filling = GraphRequest(filling, slots.tensors)
        names = [port.get_any_name() for port in filling.outputs]
        self._keys_output = names.index(ALIGNMENT_KEYS) if ALIGNMENT_KEYS in names else None
        # keys of the alignment heads by slot, [frames, heads * head_dim]
        self._alignment_keys: dict[int, Array] = {}

    @property
    def shape(self) -> AudioShape:
        encoder = self._speech.encoder
        assert encoder is not None, "a built speech model has an encoder"
        return AudioShape(
            num_mel_bins=encoder.num_mel_bins,
            num_frames=encoder.num_frames,
            num_encoder_frames=encoder.num_encoder_frames,
            num_slots=self.slots.num_slots,
            can_align=self._keys_output is not None,
        )

    def encode(self, audio: AudioInput, slot: int) -> Generator[None]:
        """Computes the features of a window and fills the slot, a part at each `next`."""
        rows = yield from self.compute_features(audio)
        yield
        self._filling.run({FRAMES: rows} | self.slots.writing_inputs(slot))
        if self._keys_output is not None:
            self._alignment_keys[slot] = self._filling.output(self._keys_output).copy()

    def compute_features(self, audio: AudioInput) -> Generator[None, None, Array]:
        """Returns the features of a window, [frames, hidden_size]; yields between two parts."""
        # A copy, because openvino takes writable arrays only.
        rows = np.frombuffer(audio.features, np.float32).reshape(1, *audio.shape).copy()
        name = MEL
        for number, part in enumerate(self._parts):
            if number:
                yield
            part.run({name: rows})
            rows, name = part.output().copy(), ROWS  # the next run writes over the output
        return rows

    def align(self, queries: Array, slot: int, num_frames: int) -> Array:
        """Returns which of the first frames each token attends to, [tokens, frames].

        `queries` are [tokens, heads * head_dim].
        """
        keys = self._alignment_keys[slot][:num_frames]
        return align_tokens(queries, keys, self._speech.head_dim)
