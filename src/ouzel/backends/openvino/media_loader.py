"""Compiles the encoders of images and sounds, and makes their runners."""

from ouzel.backends.openvino.compilation import compile_media_encoder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.vision_runner import (
    VisionRunner,
    normalise_pixels,
    read_spectrogram,
)
from ouzel.config import EngineConfig
from ouzel.types.engine_request import ImageInput, SoundInput


def make_media_runners(
    core: ov.Core, language_model: LanguageModel, engine: EngineConfig
) -> tuple[VisionRunner[ImageInput] | None, VisionRunner[SoundInput] | None]:
    """Makes the runners of the encoders of images and of sounds, as far as the model has them."""
    vision, hearing = language_model.vision, language_model.hearing
    image_runner, sound_runner = None, None
    if vision is not None:
        parts = compile_media_encoder(core, vision.parts, engine, "the vision encoder")
        image_runner = VisionRunner(parts, vision, normalise_pixels)
    if hearing is not None:
        parts = compile_media_encoder(core, hearing.parts, engine, "the audio encoder")
        sound_runner = VisionRunner(parts, hearing, read_spectrogram)
    return image_runner, sound_runner
