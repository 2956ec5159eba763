"""Opens the exporter of traces, which needs the extra `otel`."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import ouzel
from ouzel.extras import install_hint
from ouzel.options.invalid_option import InvalidOption

if TYPE_CHECKING:
    from ouzel.observability.traces import Traces

_PATH = "/v1/traces"  # the usual path of OTLP collectors


def open_traces(endpoint: str) -> "Traces | None":
    """Returns the exporter for the endpoint, or None without one. Raises InvalidOption."""
    if not endpoint:
        return None
    url = urlsplit(endpoint)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise InvalidOption(
            f"--otlp-traces-endpoint: must be a URL of http or https, given {endpoint!r}"
        )
    try:
        from ouzel.observability.traces import Traces  # noqa: PLC0415  the extra
    except ImportError as error:
        needs = f"needs the extra otel: {install_hint('otel')} ({error})"
        raise InvalidOption(f"--otlp-traces-endpoint: {needs}") from error
    try:
        return Traces(
            url.geturl() if url.path.strip("/") else url._replace(path=_PATH).geturl(),
            ouzel.__version__,
        )
    except (ValueError, OSError) as error:  # a wrong OTEL_ variable
        raise InvalidOption(
            f"--otlp-traces-endpoint: OpenTelemetry failed to start: {error}"
        ) from error
