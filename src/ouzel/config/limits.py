"""What may be asked of the server, and how long it may take."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ouzel.config.option import option

_MAX_BODY_BYTES_TOTAL = 256 * 2**20


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Limits of requests"

    max_queued_requests: Annotated[
        int,
        Meta(ge=0),
        option("Requests that may wait beyond max_num_seqs running ones; one more is a 429."),
    ] = 256
    max_connections: (
        Annotated[
            int,
            Meta(ge=1),
            option(
                "Connections that may have requests at a time; one more closes one that is idle, or is a 503.",
                unset="16384, or what the limit of file descriptors leaves",
            ),
        ]
        | None
    ) = None
    header_timeout_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("How long a request's head, or the start of TLS, may take to arrive."),
    ] = 10.0
    idle_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("How long a connection may wait for its next request.")
    ] = 60.0
    max_body_bytes: Annotated[int, Meta(ge=1024), option("Longest accepted request body.")] = (
        16 * 2**20
    )
    max_body_bytes_total: (
        Annotated[
            int,
            Meta(ge=1024),
            option(
                "Bytes of all request bodies that are read or answered at a time, beyond the first 64 KiB of each.",
                unset="256 MiB, or max_body_bytes where that is more",
            ),
        ]
        | None
    ) = None
    body_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("How long a request body may take to arrive.")
    ] = 30.0
    write_timeout_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("How long a client may not read its answer until it counts as gone."),
    ] = 60.0
    stream_keepalive_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option(
            "How long a stream of events is silent until it sends a comment, which clients skip; 0: for ever."
        ),
    ] = 10.0
    max_websockets: Annotated[
        int, Meta(ge=0), option("WebSockets that may be open at a time; one more is a 429.")
    ] = 1024
    websocket_lifetime_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("How long a WebSocket takes requests; what it runs then is finished."),
    ] = 3600.0
    strict_max_tokens: Annotated[
        bool,
        option(
            "Refuse a request that asks for more tokens than its prompt leaves, rather than giving those."
        ),
    ] = False
    max_choices: Annotated[int, Meta(ge=1, le=128), option("Largest n.")] = 128
    max_prompts: Annotated[
        int,
        Meta(ge=1),
        option(
            "Most prompts in one completions request, each of its n choices counting as one; also the most parts in "
            "which a conversation is summarised."
        ),
    ] = 256
    max_logprobs: Annotated[
        int,
        Meta(ge=-1),
        option(
            "Most alternatives per token; -1: the whole vocabulary, in answers of 1,048,576 of them."
        ),
    ] = 20
    drain_grace_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option("How long SIGTERM still takes requests, with health checks at 503."),
    ] = 0.0
    drain_timeout_s: Annotated[
        float, Meta(ge=0, le=86400), option("How long SIGTERM waits for running requests.")
    ] = 30.0

    @property
    def most_body_bytes(self) -> int:
        """What `max_body_bytes_total` comes to."""
        return self.max_body_bytes_total or max(_MAX_BODY_BYTES_TOTAL, self.max_body_bytes)
