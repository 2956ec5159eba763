"""Turns the sound file of a form into text, from admission to the answer.

The dialect of a path reads the fields and writes the answer. If the client leaves, the decoding
and the transcription are aborted.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Protocol

from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.speech_services import SpeechServices, SpeechTranscriber
from ouzel.api.endpoint.wrong_task import describe_wrong_task
from ouzel.api.http.exchange import Exchange, get_exchange
from ouzel.api.http.framing import Framing
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.speech.run import SpeechRun
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.transcription.events import Transcription, TranscriptionEvent
from ouzel.transcription.options import TranscriptionOptions

# an answer with more segments may take over a millisecond to write
_MANY_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    media_type: str
    body: bytes


class SpeechAnswer(Protocol):
    """Writes the answer of one request."""

    is_stream: bool
    framing: Framing  # framing of the stream

    def chunks(self, event: TranscriptionEvent, sound_s: float) -> Sequence[object]:
        """Returns the objects of a stream for one event; `sound_s` is the length of the sound."""
        ...

    def whole(self, result: Transcription) -> WrittenAnswer:
        """Returns the unary answer."""
        ...


class SpeechDialect(Protocol):
    """Reads the forms of one path and begins their answers. Many threads call it."""

    def prepare(self, body: bytes) -> tuple[TranscriptionOptions, SpeechAnswer]:
        """Reads the object of the fields of a form. Raises InvalidRequest and ModelNotFound."""
        ...


class SpeechEndpoint:
    """Implements one path for one model as an ASGI app."""

    def __init__(self, services: Services, dialect: SpeechDialect) -> None:
        self._model = services.model
        self._metrics = services.metrics
        self._speech = services.shared.speech
        self._threads = services.threads
        self._streams = services.streams
        self._dialect = dialect
        self._admission = RequestAdmission(services.model, services.metrics, services.shared.forms)
        self._transcriber: SpeechTranscriber | None = None  # made for the first request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._admission.admit(scope, receive) as admitted:
            body = admitted.body
            prepare = partial(self._dialect.prepare, body)
            options, answer = await self._threads.run(prepare, len(body))
            await self._answer(get_exchange(scope), options, answer, send)

    async def _answer(
        self, exchange: Exchange, options: TranscriptionOptions, answer: SpeechAnswer, send: Send
    ) -> None:
        speech = check_speech_model(self._model, self._speech)
        events = self._listen(speech, exchange, options)
        run = SpeechRun(self._model.names[0], events, exchange.arrival_s)
        exchange.other_work = run
        if answer.is_stream:
            exchange.framing = answer.framing
            await self._streams.send(
                _frames(run, answer, exchange), answer.framing, send, end=lambda: answer.framing.end
            )
        else:
            await _send(await _write(answer, await run.result()), send)

    async def _listen(
        self, speech: SpeechServices, exchange: Exchange, options: TranscriptionOptions
    ) -> AsyncGenerator[TranscriptionEvent, None]:
        """Decodes the file of the form, frees its bytes, and yields the events of its sound."""
        file = exchange.file
        assert file is not None, "the form's field `file` is required"
        sound = await speech.decoder.decode(file.data)
        with closing(sound):
            file.drop()
            exchange.audio_s = sound.duration_s
            transcribing = self._find_transcriber(speech).transcribe(
                sound,
                options,
                request_id=exchange.request_id,
                key_id=exchange.key_id,
                arrival_s=exchange.arrival_s,
            )
            async with aclosing(transcribing) as events:
                async for event in events:
                    yield event

    def _find_transcriber(self, speech: SpeechServices) -> SpeechTranscriber:
        if self._transcriber is None:
            self._transcriber = speech.make_transcriber(self._model, self._metrics)
        return self._transcriber


def check_speech_model(model: ServedModel, speech: SpeechServices | None) -> SpeechServices:
    """Returns the parts for speech. Raises InvalidRequest for a model of another task."""
    if model.engine.info.task != "transcribe":
        raise InvalidRequest(
            f"{describe_wrong_task(model, 'transcribe')}: serve a speech model, such as "
            "openai/whisper-small",
            param="model",
        )
    assert speech is not None, "a server with a speech model has the parts for it"
    return speech


async def _frames(
    run: SpeechRun, answer: SpeechAnswer, exchange: Exchange
) -> AsyncGenerator[bytes, None]:
    async with aclosing(run.events()) as events:
        async for event in events:
            assert exchange.audio_s is not None, "the sound of an event was decoded"
            yield answer.framing.frames(answer.chunks(event, exchange.audio_s))


async def _write(answer: SpeechAnswer, result: Transcription) -> WrittenAnswer:
    if len(result.segments) > _MANY_SEGMENTS:
        return await asyncio.to_thread(answer.whole, result)
    return answer.whole(result)


async def _send(written: WrittenAnswer, send: Send) -> None:
    headers = [
        (b"content-type", written.media_type.encode()),
        (b"content-length", str(len(written.body)).encode()),
    ]
    await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": headers})
    await send({"type": "http.response.body", "body": written.body})
