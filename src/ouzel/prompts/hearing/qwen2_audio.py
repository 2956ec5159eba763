"""Qwen2-Audio reads up to 30 s of a sound; one token stands for 40 ms.

Reference: transformers, models/qwen2_audio/processing_qwen2_audio.py. The reference cuts a longer
sound without a word; here it is refused.
"""

from dataclasses import dataclass

from ouzel.audio.mel import HOP, WINDOW_FRAMES, MelSpectrogram, Spectrogram
from ouzel.audio.sound import SAMPLE_RATE, SampledSound
from ouzel.prompts.hearing.base import SoundLayout, SoundProcessor, check_length
from ouzel.prompts.hearing.settings import read_mel_settings
from ouzel.prompts.vision.settings import ProcessorFiles

_MAX_SECONDS = WINDOW_FRAMES * HOP // SAMPLE_RATE
_MIN_SAMPLES = 2 * HOP + 1  # three frames: two rows, whose average is the feature of one token
_FRAMES_BEHIND = 2  # frames of silence behind a sound that the convolutions of its rows reach


@dataclass(frozen=True, slots=True)
class Qwen2AudioProcessor:
    feature_token: str
    mel: MelSpectrogram

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, num_samples: int) -> SoundLayout:
        check_length(num_samples, min_samples=_MIN_SAMPLES, max_seconds=_MAX_SECONDS)
        num_frames = -(-num_samples // HOP)
        num_tokens = (num_frames + 1) // 2 // 2
        return SoundLayout(self.feature_token * num_tokens, num_tokens, num_frames)

    def compute_features(self, sound: SampledSound) -> Spectrogram:
        num_frames = self.layout(sound.num_samples).num_frames
        # an even number of frames, because a row has two
        end = min(num_frames + num_frames % 2 + _FRAMES_BEHIND, WINDOW_FRAMES)
        return self.mel.window(sound, 0, self.mel.find_peak(sound))[:, :end]


def load(files: ProcessorFiles) -> SoundProcessor:
    """Makes the processor. Raises ModelLoadError."""
    audio = files.config.get("audio_config")
    num_bins = audio.get("num_mel_bins", 128) if isinstance(audio, dict) else 128
    settings = read_mel_settings(files, num_bins)
    return Qwen2AudioProcessor(
        feature_token=files.token_text("audio_token", "<|AUDIO|>"),
        mel=MelSpectrogram(settings.feature_size),
    )
