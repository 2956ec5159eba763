"""Compiles the audio encoder of a speech model, and makes its runner."""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.compilation import compile_media_encoder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.audio_runner import AudioRunner
from ouzel.backends.openvino.runners.cross_slots import (
    CrossSlots,
    count_slot_bytes,
    find_cross_tables,
    plan_slots,
)
from ouzel.backends.openvino.speech_model import SpeechModel
from ouzel.config import EngineConfig


@dataclass(frozen=True, slots=True)
class InspectedSound:
    """The facts of the windows of sound that a speech model keeps; sizes are in bytes."""

    num_slots: int
    slot_bytes: int


def compile_audio_parts(
    core: ov.Core, language_model: LanguageModel, engine: EngineConfig
) -> list[ov.CompiledModel]:
    """Compiles the parts of the audio encoder; returns none for a model without one."""
    speech = language_model.speech
    if speech is None or speech.encoder is None:
        return []
    return compile_media_encoder(core, speech.encoder.parts, engine, "the audio encoder")


def make_audio_runner(
    parts: list[ov.CompiledModel],
    further: list[ov.CompiledModel],
    speech: SpeechModel | None,
    engine: EngineConfig,
    *,
    free_bytes: int,
) -> tuple[AudioRunner | None, list[ov.CompiledModel]]:
    """Makes the runner of a speech model, and returns the graphs behind the model's that remain.

    The first of them fills slots, if it is a speech model.
    """
    if speech is None:
        return None, further
    assert speech.encoder is not None, "a built speech model has an encoder"
    filling, *others = further
    num_frames = speech.encoder.num_encoder_frames
    tables = find_cross_tables(filling)
    num_slots = plan_slots(tables, num_frames, engine.max_num_seqs, free_bytes)
    slots = CrossSlots(tables, num_frames, num_slots)
    return AudioRunner(parts, filling, speech, slots), others


def inspect_sound(
    further: Sequence[ov.CompiledModel],
    speech: SpeechModel | None,
    engine: EngineConfig,
    *,
    free_bytes: int,
) -> InspectedSound | None:
    """Describes the windows of sound of a speech model; returns None for other models."""
    if speech is None or speech.encoder is None:
        return None
    tables = find_cross_tables(further[0])
    num_frames = speech.encoder.num_encoder_frames
    num_slots = plan_slots(tables, num_frames, engine.max_num_seqs, free_bytes)
    return InspectedSound(num_slots, count_slot_bytes(tables, num_frames))
