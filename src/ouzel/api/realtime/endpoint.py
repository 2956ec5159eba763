"""Opens the WebSockets of realtime sessions, which turn speech into text while it arrives."""

from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.query import Query
from ouzel.api.http.socket_life import SocketLife
from ouzel.api.realtime.connection import Connection
from ouzel.api.realtime.live_session import LiveSession
from ouzel.api.realtime.speech_models import SpeechModels
from ouzel.api.realtime.turn_transcriber import TurnTranscriber
from ouzel.audio.sound import SAMPLE_BYTES, SAMPLE_RATE
from ouzel.transcription.live.speech_probability import LiveEnergyDetector

_INTENT = "transcription"
_PROTOCOL = "realtime"


class RealtimeSocket:
    def __init__(self, catalogue: Catalogue) -> None:
        self._models = SpeechModels(catalogue)
        self._shared = catalogue.shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = Query(QueryParams(scope["query_string"]), "intent", "model")
        query.choice("intent", _INTENT, (_INTENT,))
        model_name = query.text("model")
        await self._models.check(model_name or "")
        limits, speech = self._shared.limits, self._shared.speech
        session = LiveSession(
            self._models,
            self._shared.threads,
            LiveEnergyDetector if speech is None else speech.make_activity,
            model_name=model_name,
            max_samples=self._limit_samples(),
            lifetime_s=limits.websocket_lifetime_s,
        )
        transcriber = TurnTranscriber(
            self._models,
            exchange=get_exchange(scope),
            path=scope["raw_path"].decode("latin-1"),
        )
        with self._shared.sockets.count():
            await receive()  # connect
            await send({"type": "websocket.accept", "subprotocol": _choose_protocol(scope)})
            with self._shared.bodies.share() as share:
                await Connection(
                    SocketLife(limits, receive, send),
                    session,
                    transcriber,
                    share=share,
                    threads=self._shared.threads,
                ).serve()

    def _limit_samples(self) -> int:
        """Returns the limit of a turn: the length of a sound, and the bytes of a body."""
        max_samples = self._shared.limits.max_body_bytes // SAMPLE_BYTES
        speech = self._shared.speech
        if speech is None:
            return max_samples
        return min(int(speech.max_sound_s * SAMPLE_RATE), max_samples)


def _choose_protocol(scope: Scope) -> str | None:
    """Returns the protocol of OpenAI's clients in pages, which close a WebSocket without it."""
    return _PROTOCOL if _PROTOCOL in scope.get("subprotocols", ()) else None


OPERATIONS = (
    Operation(
        method="websocket",
        path="/v1/realtime",
        prefixes=PREFIXES,
        # OpenAPI cannot describe WebSockets; the summary of transcriptions names it.
        is_documented=False,
        overall=RealtimeSocket,
    ),
)
