"""Makes the parts of a server that turn sound files into text, and texts into sound."""

from pathlib import Path

from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.audio.decoder import AudioDecoder
from ouzel.audio.mel import MelSpectrogram
from ouzel.config.audio import AudioConfig
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.speaking import Speaker
from ouzel.speaking.phonemizer import Phonemizer
from ouzel.transcription.live.speech_probability import LiveEnergyDetector
from ouzel.transcription.model_activity import ModelDetector
from ouzel.transcription.transcriber import Transcriber
from ouzel.transcription.voice_activity import EnergyDetector
from ouzel.worker_threads import WorkerThreads

_PHONEME_THREADS = 2


def open_voice_detector(config: AudioConfig) -> ModelDetector | None:
    """Returns the detector of the option vad_model; None without it. Raises ModelLoadError."""
    if not config.vad_model:
        return None
    # This process needs no OpenVINO without the option.
    from ouzel.backends.openvino.voice_detector import VoiceDetector  # noqa: PLC0415

    detector = VoiceDetector(Path(config.vad_model))
    return ModelDetector(detector.start, detector.frame_samples)


class OpenSpeech:
    """Owns the decoder of sound files, and the threads for whole sounds and for phonemes."""

    def __init__(self, config: AudioConfig, detector: ModelDetector | None) -> None:
        self._activity = EnergyDetector() if detector is None else detector
        self._decoder = AudioDecoder(config)
        self._threads = WorkerThreads("sounds", config.max_audio_decoders)
        self._phoneme_threads = WorkerThreads("phonemes", _PHONEME_THREADS)
        self.services = SpeechServices(
            decoder=self._decoder,
            make_transcriber=self._make_transcriber,
            make_speaker=self._make_speaker,
            max_file_bytes=config.max_audio_file_bytes,
            max_sound_s=config.max_audio_seconds,
            make_activity=LiveEnergyDetector if detector is None else detector.start_live,
            max_text_characters=config.max_speech_characters,
        )

    def close(self) -> None:
        self._decoder.close()
        self._threads.close()
        self._phoneme_threads.close()

    def _make_transcriber(self, model: ServedModel, metrics: Metrics) -> Transcriber:
        shape, tokens = model.engine.info.audio, model.speech
        assert shape is not None, "a speech model tells the shape of its sound"
        assert tokens is not None, "a speech model has the tokens of a transcript"
        return Transcriber(
            model,
            metrics,
            tokens,
            MelSpectrogram(shape.num_mel_bins),
            self._threads,
            voice_activity=self._activity,
        )

    def _make_speaker(self, model: ServedModel, metrics: Metrics) -> Speaker:
        return Speaker(model, metrics, self._phoneme_threads, _make_phonemizer)


def _make_phonemizer(language: str) -> Phonemizer:
    """Returns the phonemizer of a language. Raises LanguageNotSpoken."""
    # The patterns of English take 50 ms to compile; a server without a voice model saves the time.
    from ouzel.phonemes.phonemizer import make_phonemizer  # noqa: PLC0415

    return make_phonemizer(language)
