"""Extracts the readable text of a page, in a limited process.

No other module imports trafilatura, the extra `web`.
"""

from collections.abc import Callable

import msgspec


class ReadableText(msgspec.Struct, frozen=True):
    title: str
    text: str


def create_readable_job() -> Callable[[bytes], bytes]:
    """Returns a function from the bytes of an HTML page to an encoded ReadableText."""
    import trafilatura  # noqa: PLC0415  an extra
    from trafilatura.metadata import extract_metadata  # noqa: PLC0415
    from trafilatura.utils import load_html  # noqa: PLC0415

    def run(page: bytes) -> bytes:
        tree = load_html(page)
        if tree is None:
            return msgspec.msgpack.encode(ReadableText("", ""))
        metadata = extract_metadata(tree)
        text = trafilatura.extract(
            tree, output_format="markdown", include_tables=True, include_links=False
        )
        title = "" if metadata is None else metadata.title or ""
        return msgspec.msgpack.encode(ReadableText(title, text or ""))

    return run
