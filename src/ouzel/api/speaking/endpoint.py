"""Reads the text of a body aloud, from admission to the answer.

The dialect of a path reads the body. The sound of a sentence is sent as soon as it is encoded. If
the client leaves, the speech is aborted.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from functools import partial
from http import HTTPStatus
from typing import Protocol

from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.speech_services import SpeechMaker
from ouzel.api.endpoint.wrong_task import describe_wrong_task
from ouzel.api.http.exchange import Exchange, get_exchange
from ouzel.api.http.framing import SSE, Framing
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.speaking.plan import SpeechPlan
from ouzel.api.speaking.run import SpeechRun
from ouzel.audio.writing.ffmpeg_writer import fill_num_samples
from ouzel.audio.writing.formats import MEDIA_TYPES
from ouzel.audio.writing.sound_encoding import SoundEncoding
from ouzel.audio.writing.wav_writer import fill_sizes
from ouzel.errors import InvalidRequest
from ouzel.speaking.spoken_part import SpokenPart
from ouzel.wire.speech_events import SpeechDeltaEvent, SpeechDoneEvent, SpeechUsage
from ouzel.worker_threads import LONG_BODY_BYTES

_LONG_PIECE_BYTES = 2**16  # base64 of a longer piece may take over a millisecond


class SpeakingDialect(Protocol):
    """Reads the bodies of one path. Many threads call it."""

    def prepare(self, body: bytes) -> SpeechPlan:
        """Returns the plan of a body's speech. Raises InvalidRequest and ModelNotFound."""
        ...


class SpeakingEndpoint:
    """Implements one path for one model as an ASGI app."""

    def __init__(self, services: Services, dialect: SpeakingDialect) -> None:
        self._model = services.model
        self._metrics = services.metrics
        self._speech = services.shared.speech
        self._threads = services.threads
        self._encoders = services.shared.encoding
        self._streams = services.streams
        self._dialect = dialect
        self._admission = RequestAdmission(services.model, services.metrics, services.shared.bodies)
        self._speaker: SpeechMaker | None = None  # made for the first request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._admission.admit(scope, receive) as admitted:
            body, exchange = admitted.body, get_exchange(scope)
            speaker = self._find_speaker()
            prepare = partial(self._prepare, speaker, body)
            # Short bodies take long, too: the first text of a language reads its lexicons.
            plan = await self._threads.run(prepare, max(len(body), LONG_BODY_BYTES + 1))
            run = self._begin(speaker, plan, exchange)
            await self._send(run, plan, speaker.sample_rate, exchange, send)

    def _find_speaker(self) -> SpeechMaker:
        if self._speaker is None:
            if self._model.engine.info.task != "speak":
                raise InvalidRequest(
                    f"{describe_wrong_task(self._model, 'speak')}: serve a voice model, such as "
                    "onnx-community/Kokoro-82M-v1.0-ONNX",
                    param="model",
                )
            assert self._speech is not None, "a server with a voice model has the parts for it"
            assert self._speech.make_speaker is not None, "the parts include a maker of speakers"
            self._speaker = self._speech.make_speaker(self._model, self._metrics)
        return self._speaker

    def _prepare(self, speaker: SpeechMaker, body: bytes) -> SpeechPlan:
        plan = self._dialect.prepare(body)
        try:
            if plan.options.text:
                speaker.check(plan.options)
        except InvalidRequest as error:
            if error.param == "language" and plan.language_field != "language":
                raise error.at(plan.language_field) from error.__cause__
            raise
        return plan

    def _begin(self, speaker: SpeechMaker, plan: SpeechPlan, exchange: Exchange) -> SpeechRun:
        parts = (
            speaker.speak(
                plan.options,
                request_id=exchange.request_id,
                key_id=exchange.key_id,
                arrival_s=exchange.arrival_s,
            )
            if plan.options.text
            else _speak_nothing()
        )
        run = SpeechRun(self._model.names[0], parts, speaker.sample_rate, exchange)
        exchange.other_work = run
        exchange.audio_s = 0.0
        return run

    async def _send(
        self, run: SpeechRun, plan: SpeechPlan, rate: int, exchange: Exchange, send: Send
    ) -> None:
        encoding = SoundEncoding(plan.format, rate, self._encoders, volume=plan.volume)
        pieces = _encode(run, encoding)
        if plan.delivery == "whole":
            await _send_whole(await _collect(pieces, plan, run), plan, send)
            return
        framing = SSE if plan.delivery == "events" else _make_file_framing(plan)
        exchange.framing = framing
        frames = _frame(run, pieces) if plan.delivery == "events" else pieces
        await self._streams.send(frames, framing, send, end=lambda: framing.end)


def _make_file_framing(plan: SpeechPlan) -> Framing:
    media_type = MEDIA_TYPES[plan.format].encode()
    return Framing(content_type=media_type, before=b"", after=b"", end=b"", has_errors=False)


async def _speak_nothing() -> AsyncGenerator[SpokenPart, None]:
    """Yields no part: the speech of an empty text."""
    parts = list[SpokenPart]()
    for part in parts:
        yield part


async def _encode(run: SpeechRun, encoding: SoundEncoding) -> AsyncGenerator[bytes, None]:
    """Yields the bytes of each part of the speech, then the rest of the file."""
    with closing(encoding):
        async with aclosing(run.parts()) as parts:
            async for part in parts:
                yield await encoding.write(part.samples)
        yield await encoding.finish()


async def _frame(
    run: SpeechRun, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yields the pieces as events, then the event of the end."""
    async with aclosing(pieces):
        async for piece in pieces:
            if len(piece) > _LONG_PIECE_BYTES:
                yield await asyncio.to_thread(SSE.frames, [SpeechDeltaEvent(piece)])
            elif piece:
                yield SSE.frames([SpeechDeltaEvent(piece)])
    usage = run.usage()
    yield SSE.frames(
        [
            SpeechDoneEvent(
                SpeechUsage(
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    usage.prompt_tokens + usage.completion_tokens,
                )
            )
        ]
    )


async def _collect(
    pieces: AsyncGenerator[bytes, None], plan: SpeechPlan, run: SpeechRun
) -> list[bytes]:
    """Returns the pieces of the complete file, whose first has the header with the length.

    The pieces are not joined: a file may have hundreds of megabytes.
    """
    async with aclosing(pieces):
        file = [piece async for piece in pieces if piece]
    if not file:
        return file
    first = bytearray(file[0])
    if plan.format in ("wav", "wav_float"):
        fill_sizes(first, sum(map(len, file)))
    elif plan.format == "flac" and run.num_samples:
        fill_num_samples(first, run.num_samples)
    return [bytes(first), *file[1:]]


async def _send_whole(file: list[bytes], plan: SpeechPlan, send: Send) -> None:
    headers = [
        (b"content-type", MEDIA_TYPES[plan.format].encode()),
        (b"content-length", str(sum(map(len, file))).encode()),
    ]
    await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": headers})
    for piece in file:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
