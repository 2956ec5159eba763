"""Traces need an extra, which is looked for when the process starts, and only where they are asked for."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import ouzel
from ouzel.extras import install_hint
from ouzel.options.invalid_option import InvalidOption

if TYPE_CHECKING:
    from ouzel.observability.traces import Traces

_PATH = "/v1/traces"  # where collectors take them


def open_traces(endpoint: str) -> "Traces | None":
    """Returns None where no traces are asked for. Raises InvalidOption."""
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
    except (ValueError, OSError) as error:  # of an OTEL_ variable
        raise InvalidOption(
            f"--otlp-traces-endpoint: OpenTelemetry cannot be set up: {error}"
        ) from error
