"""Responses on the wire: whole, or event by event."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
from starlette.types import Send

from ouzel.api.responses.event_framing import EventFraming
from ouzel.responses.response_object import ResponseObject

_MANY_LOGPROBS = 16  # writing more positions than this may take over a millisecond


async def send_events(following: AsyncGenerator[Sequence[bytes], None], framing: EventFraming, send: Send) -> None:
    """The answer starts with the first event, so that what fails before it has an honest status."""
    is_started = False
    async with aclosing(following):
        async for events in following:
            if not is_started:
                await send({"type": "http.response.start", "status": 200, "headers": framing.headers})
                is_started = True
            await send({"type": "http.response.body", "body": framing.frames(events), "more_body": True})
    if not is_started:
        await send({"type": "http.response.start", "status": 200, "headers": framing.headers})
    await send({"type": "http.response.body", "body": framing.end})


async def send_json(value: object, send: Send) -> None:
    body = await asyncio.to_thread(msgspec.json.encode, value) if _is_long(value) else msgspec.json.encode(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _is_long(value: object) -> bool:
    if not isinstance(value, ResponseObject):
        return False
    return sum(len(part.logprobs) for part in value.text_parts) > _MANY_LOGPROBS
