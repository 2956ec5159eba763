"""Defines the options that limit requests, connections and their time."""

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
        option("Largest number of waiting requests beyond max_num_seqs; one more gets a 429."),
    ] = 256
    max_batches: Annotated[
        int,
        Meta(ge=0),
        option("Largest number of unfinished batches of an API key; one more gets a 429."),
    ] = 100
    max_connections: (
        Annotated[
            int,
            Meta(ge=1),
            option(
                "Largest number of connections with requests; one more closes an idle one, or gets "
                "a 503.",
                unset="16384, or as many as file descriptors allow",
            ),
        ]
        | None
    ) = None
    header_timeout_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("Longest time for a request's head, or the start of TLS."),
    ] = 10.0
    idle_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time of a connection between requests.")
    ] = 60.0
    max_body_bytes: Annotated[int, Meta(ge=1024), option("Longest accepted request body.")] = (
        16 * 2**20
    )
    max_body_bytes_total: (
        Annotated[
            int,
            Meta(ge=1024),
            option(
                "Limit of all request bodies in memory, in bytes; the first 64 KiB of each do not "
                "count.",
                unset="256 MiB, or max_body_bytes if that is more",
            ),
        ]
        | None
    ) = None
    body_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time for a request body to arrive.")
    ] = 30.0
    write_timeout_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("Longest time without reading by a client; then its connection is closed."),
    ] = 60.0
    stream_keepalive_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option(
            "Longest silence of an event stream; then a comment is sent, which clients skip. 0: "
            "no comments."
        ),
    ] = 10.0
    max_websockets: Annotated[
        int, Meta(ge=0), option("Most open WebSockets; one more gets a 429.")
    ] = 1024
    websocket_lifetime_s: Annotated[
        float,
        Meta(gt=0, le=86400),
        option("Longest time that a WebSocket takes requests; running ones are finished."),
    ] = 3600.0
    strict_max_tokens: Annotated[
        bool,
        option(
            "Refuse a request that asks for more tokens than fit behind its prompt; off: lower its "
            "limit."
        ),
    ] = False
    max_choices: Annotated[int, Meta(ge=1, le=128), option("Largest n.")] = 128
    max_prompts: Annotated[
        int,
        Meta(ge=1),
        option(
            "Most prompts in one completions request, counting each of its n choices; also the "
            "most parts into which a conversation is divided for a summary."
        ),
    ] = 256
    max_logprobs: Annotated[
        int,
        Meta(ge=-1),
        option(
            "Most alternatives per token; -1: the whole vocabulary, but at most 1,048,576 "
            "alternatives in one answer."
        ),
    ] = 20
    drain_grace_s: Annotated[
        float,
        Meta(ge=0, le=86400),
        option("How long requests are still taken after SIGTERM; health checks then answer 503."),
    ] = 0.0
    drain_timeout_s: Annotated[
        float, Meta(ge=0, le=86400), option("How long running requests may take after SIGTERM.")
    ] = 30.0

    @property
    def most_body_bytes(self) -> int:
        """Returns the byte limit of all request bodies: `max_body_bytes_total` or its default."""
        return self.max_body_bytes_total or max(_MAX_BODY_BYTES_TOTAL, self.max_body_bytes)
