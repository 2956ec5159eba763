"""Defines the options of logs, metrics and traces."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.option import option


class ObservabilityConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Observability"

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], option("Lowest level to log.", is_common=True)
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        option("Format of log lines, for people or programs."),
    ] = "text"
    otlp_traces_endpoint: Annotated[
        str,
        option(
            "URL of an OTLP/HTTP collector of traces, http://HOST:4318. Needs the extra otel.",
            unset="none",
        ),
    ] = ""
    metrics_port: (
        Annotated[
            int,
            Meta(ge=0, le=65535),
            option(
                "A separate port for /metrics and the health checks, without keys and TLS; 0 takes "
                "a free one.",
                unset="none",
            ),
        ]
        | None
    ) = None
    metrics_host: Annotated[str, option("Address of --metrics-port.", unset="--host")] = ""
