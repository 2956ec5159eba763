"""Sends a response whole, or event by event."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from starlette.types import Send

from ouzel.api.http.send import send_json
from ouzel.api.http.streams import Streams
from ouzel.api.responses.event_framing import EventFraming
from ouzel.responses.response_object import ResponseObject

# yields the events of each wake-up, as JSON
Following = AsyncGenerator[Sequence[bytes], None]

# encoding more positions with logprobs than this may take over a millisecond
_MANY_LOGPROBS = 16


async def send_events(
    following: Following, framing: EventFraming, streams: Streams, send: Send
) -> None:
    await streams.send(
        _frames(following, framing), framing.framing, send, end=lambda: framing.framing.end
    )


async def send_response(response: ResponseObject, send: Send) -> None:
    encode = msgspec.json.encode
    num_logprobs = sum(len(part.logprobs) for part in response.text_parts)
    takes_long = num_logprobs > _MANY_LOGPROBS
    await send_json(
        await asyncio.to_thread(encode, response) if takes_long else encode(response), send
    )


async def _frames(following: Following, framing: EventFraming) -> AsyncGenerator[bytes, None]:
    async with aclosing(following):
        async for events in following:
            yield framing.frames(events)
