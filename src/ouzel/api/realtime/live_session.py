"""Obeys the messages of one session: changes it, takes its sound, and queues its turns."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import assert_never

import msgspec

from ouzel.api.http.body_budget import Share
from ouzel.api.realtime.events import (
    Cleared,
    Committed,
    ItemAdded,
    ItemDone,
    SessionCreated,
    SessionUpdated,
    StartedSpeech,
    StoppedSpeech,
    UserItem,
)
from ouzel.api.realtime.messages import Append, Clear, ClientMessage, Commit, UpdateSession
from ouzel.api.realtime.outbox import Outbox
from ouzel.api.realtime.session import make_session, update_session
from ouzel.api.realtime.speech_models import SpeechModels
from ouzel.api.realtime.turn_transcriber import put_failure
from ouzel.api.realtime.turns import Turn, Turns
from ouzel.audio.sound import Sound
from ouzel.errors import Overloaded
from ouzel.responses.output_items import new_id
from ouzel.transcription.live.live_input import LiveInput, TurnStarted, TurnStopped
from ouzel.transcription.live.speech_probability import LiveVoiceActivity
from ouzel.worker_threads import LONG_BODY_BYTES, PreparationThreads

# samples of G.711 take four times the bytes when they are 16-bit integers at 16 kHz
_MOST_GROWTH = 4


class LiveSession:
    """Call `begin` before the first message."""

    def __init__(
        self,
        models: SpeechModels,
        threads: PreparationThreads,
        make_activity: Callable[[], LiveVoiceActivity],
        *,
        model_name: str | None,
        max_samples: int,
        lifetime_s: float,
    ) -> None:
        """`max_samples` limits a turn, and the sound that no turn has taken."""
        self._models = models
        self._threads = threads
        self._id = new_id("sess")
        self._expires_at = int(time.time() + lifetime_s)
        self._session = make_session(model_name)
        self._input = LiveInput(make_activity, max_samples=max_samples)
        self._input.configure(self._session.input_format, self._session.detection)
        self._item_id: str | None = None  # the item of the turn in progress
        self._previous_item_id: str | None = None
        self._turns: Turns
        self._share: Share

    def begin(self, turns: Turns, share: Share) -> None:
        """Sets the queue of turns, and the share that counts the bytes of sound."""
        self._turns = turns
        self._share = share

    async def tell_created(self, outbox: Outbox) -> None:
        await outbox.put(SessionCreated(session=self._write_session()))

    async def obey(self, message: ClientMessage, outbox: Outbox) -> None:
        """Raises InvalidRequest and Overloaded; then the message has changed nothing."""
        match message:
            case UpdateSession(update):
                await self._update(update, outbox)
            case Append(data):
                await self._append(data, outbox)
            case Commit():
                sound = await self._threads.run(self._input.commit, self._input.num_bytes)
                await self._commit(sound, outbox)
            case Clear():
                self._input.clear()
                self._item_id = None
                self.settle()
                await outbox.put(Cleared())
            case unreachable:
                assert_never(unreachable)

    def settle(self) -> None:
        """Shrinks the share of the body budget to the bytes of sound that are in memory."""
        self._share.shrink_to(self._count_bytes())

    async def _update(self, update: object, outbox: Outbox) -> None:
        session = update_session(self._session, update)
        if session.model_name != self._session.model_name:
            await self._models.check(session.model_name or "")
        self._session = session
        found = self._input.configure(session.input_format, session.detection)
        await outbox.put(SessionUpdated(session=self._write_session()))
        await self._tell(found, outbox)

    async def _append(self, data: bytes, outbox: Outbox) -> None:
        self._share.grow_to(self._count_bytes() + _MOST_GROWTH * len(data))
        # A detector that is a model takes long for a short sound, too: it waits for other sounds.
        num_bytes = max(len(data), LONG_BODY_BYTES + 1)
        try:
            found = await self._threads.run(partial(self._input.append, data), num_bytes)
            await self._tell(found, outbox)
        finally:
            self.settle()

    async def _tell(self, found: Iterable[TurnStarted | TurnStopped], outbox: Outbox) -> None:
        for edge in found:
            match edge:
                case TurnStarted(start_ms):
                    self._item_id = new_id("item")
                    started = StartedSpeech(audio_start_ms=start_ms, item_id=self._item_id)
                    await outbox.put(started)
                case TurnStopped(end_ms, sound):
                    assert self._item_id is not None, "a turn starts before it stops"
                    stopped = StoppedSpeech(audio_end_ms=end_ms, item_id=self._item_id)
                    await outbox.put(stopped)
                    await self._commit(sound, outbox)
                case unreachable:
                    assert_never(unreachable)

    async def _commit(self, sound: Sound, outbox: Outbox) -> None:
        item = UserItem(self._item_id or new_id("item"))
        previous, self._previous_item_id = self._previous_item_id, item.id
        self._item_id = None
        await outbox.put(Committed(item_id=item.id, previous_item_id=previous))
        await outbox.put(ItemAdded(item=item, previous_item_id=previous))
        await outbox.put(ItemDone(item=item, previous_item_id=previous))
        options = self._session.read_options()
        if options is None:
            sound.close()
            self.settle()
            return
        try:
            self._turns.add(Turn(item.id, sound, options, self._session.model_name or ""))
        except Overloaded as error:
            sound.close()
            await put_failure(item.id, error, outbox)

    def _count_bytes(self) -> int:
        return self._input.num_bytes + self._turns.num_bytes

    def _write_session(self) -> dict[str, object]:
        fields: dict[str, object] = msgspec.to_builtins(self._session)
        return {
            "id": self._id,
            "object": "realtime.transcription_session",
            "expires_at": self._expires_at,
            **fields,
        }
