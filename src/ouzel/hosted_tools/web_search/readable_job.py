"""Extracts the readable text of an HTML page, in a limited process.

No other module imports trafilatura, the extra `web`.
"""

import logging
from collections.abc import Callable

import msgspec


class HtmlPage(msgspec.Struct, frozen=True):
    data: bytes
    charset: str | None  # Python's name; None: the page does not say


class ReadableText(msgspec.Struct, frozen=True):
    title: str
    text: str


MAX_CHARS = 2**20  # limit for the text of a page
MAX_TITLE = 300


def create_readable_job() -> Callable[[bytes], bytes]:
    """Returns a function from an encoded HtmlPage to an encoded ReadableText."""
    # Its errors tell about pages of strangers, not about this server.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    import trafilatura  # noqa: PLC0415  an extra
    from trafilatura.metadata import extract_metadata  # noqa: PLC0415
    from trafilatura.utils import decode_file, load_html  # noqa: PLC0415

    def run(encoded: bytes) -> bytes:
        page = msgspec.msgpack.decode(encoded, type=HtmlPage)
        if page.charset is None:
            html = decode_file(page.data)  # guesses
        else:
            html = page.data.decode(page.charset, "replace")
        tree = load_html(html)
        if tree is None:
            return msgspec.msgpack.encode(ReadableText("", ""))
        metadata = extract_metadata(tree)
        text = trafilatura.extract(
            tree, output_format="markdown", include_tables=True, include_links=False
        )
        title = "" if metadata is None else metadata.title or ""
        return msgspec.msgpack.encode(ReadableText(title[:MAX_TITLE], (text or "")[:MAX_CHARS]))

    return run
