"""Makes records for the tests of the store."""

import secrets
from collections.abc import Sequence

from ouzel.store.records import Item, NewResponse, Progress, Status


def items(*texts: str) -> tuple[Item, ...]:
    return tuple(
        Item(f"msg_{text}", f'{{"id":"msg_{text}","text":"{text}"}}'.encode()) for text in texts
    )


def texts(found: Sequence[Item]) -> list[str]:
    return [item.id.removeprefix("msg_") for item in found]


def new_response(
    response_id: str = "",
    *,
    key_id: str | None = "key",
    model: str = "model",
    status: Status = Status.IN_PROGRESS,
    previous: str | None = None,
    conversation: str | None = None,
    last_item_read: str | None = None,
    asked: Sequence[str] = (),
    request: bytes | None = None,
    events: Sequence[bytes] = (),
) -> NewResponse:
    return NewResponse(
        id=response_id or f"resp_{secrets.token_hex(8)}",
        key_id=key_id,
        model=model,
        status=status,
        is_background=request is not None,
        previous_response_id=previous,
        conversation_id=conversation,
        last_item_read=last_item_read,
        body=b'{"status":"new"}',
        request=request,
        input_items=items(*asked),
        events=tuple(events),
    )


def progress(
    status: Status = Status.COMPLETED, *said: str, events: Sequence[bytes] = ()
) -> Progress:
    return Progress(
        status=status,
        body=f'{{"status":"{status}"}}'.encode(),
        events=tuple(events),
        output_items=items(*said),
    )
