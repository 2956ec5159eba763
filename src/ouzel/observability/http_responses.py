"""Counts the HTTP responses of a server by path and status code."""

from collections import Counter

from ouzel.observability.series import family_text

UNKNOWN_PATH = "unknown"  # the label of all paths without an operation


class HttpResponses:
    """Counts responses by path and status.

    A path is the path template of an operation, so that clients cannot create new series.
    """

    def __init__(self) -> None:
        self._numbers: Counter[tuple[str, int]] = Counter()

    def count(self, path: str, code: int) -> None:
        """Counts one response; an empty path stands for an unknown operation."""
        self._numbers[path or UNKNOWN_PATH, code] += 1

    def text(self) -> str:
        """Returns the family in Prometheus' text format."""
        samples = [
            ("_total", {"path": path, "code": str(code)}, number)
            for (path, code), number in self._numbers.items()
        ]
        documentation = (
            "HTTP responses by operation and status; "
            "499: the client disconnected before the answer began."
        )
        return family_text("ouzel_http_responses", "counter", documentation, samples)
