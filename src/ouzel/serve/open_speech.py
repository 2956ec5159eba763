"""Makes the parts of a server that turn sound files into text."""

from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.audio.decoder import AudioDecoder
from ouzel.audio.mel import MelSpectrogram
from ouzel.config.audio import AudioConfig
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.transcription.transcriber import Transcriber
from ouzel.worker_threads import WorkerThreads


class OpenSpeech:
    """Owns the decoder of sound files, and the threads that read whole sounds."""

    def __init__(self, config: AudioConfig) -> None:
        self._decoder = AudioDecoder(config)
        self._threads = WorkerThreads("sounds", config.max_audio_decoders)
        self.services = SpeechServices(
            decoder=self._decoder,
            make_transcriber=self._make_transcriber,
            max_file_bytes=config.max_audio_file_bytes,
            max_sound_s=config.max_audio_seconds,
            max_text_characters=config.max_speech_characters,
        )

    def close(self) -> None:
        self._decoder.close()
        self._threads.close()

    def _make_transcriber(self, model: ServedModel, metrics: Metrics) -> Transcriber:
        shape, tokens = model.engine.info.audio, model.speech
        assert shape is not None, "a speech model tells the shape of its sound"
        assert tokens is not None, "a speech model has the tokens of a transcript"
        return Transcriber(
            model, metrics, tokens, MelSpectrogram(shape.num_mel_bins), self._threads
        )
