"""Every log line names the request that it belongs to."""

import logging
from contextvars import ContextVar

request_id_in_scope: ContextVar[str] = ContextVar("request_id", default="-")


def configure_logging(level: str) -> None:
    """Puts one handler on the `ouzel` logger."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"))
    handler.addFilter(_add_request_id)
    logger = logging.getLogger("ouzel")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


def _add_request_id(record: logging.LogRecord) -> bool:
    record.request_id = request_id_in_scope.get()
    return True
