"""Turns the bytes of web pages into readable text, outside the server's process."""

import importlib.util
from functools import partial

import msgspec

from ouzel.extras import install_hint
from ouzel.hosted_tools.web_search.charsets import decode_text, find_charset
from ouzel.hosted_tools.web_search.readable_job import MAX_CHARS, HtmlPage, ReadableText
from ouzel.hosted_tools.web_search.records import UnreadablePage, WebError
from ouzel.limited_process import JobEnded, JobLost, LimitedProcess, Limits
from ouzel.worker_threads import WorkerThreads

_ROOM = "ouzel.hosted_tools.web_search"
_HTML = ("text/html", "application/xhtml+xml")
_PDF = "application/pdf"
_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-ndjson")
_SUFFIXES = ("+json", "+xml")
_LIMITS = Limits(wall_s=20.0, memory_bytes=512 * 2**20, cpu_s=10.0)
_MAX_AT_ONCE = 2
_MAX_WAITING = 64

_READABLE = msgspec.msgpack.Decoder(ReadableText)


class PageReader:
    """Reads pages. It belongs to one event loop; its processes start with the first page."""

    def __init__(self) -> None:
        self._threads = WorkerThreads("web pages", _MAX_AT_ONCE, max_waiting=_MAX_WAITING)
        self._html = LimitedProcess(f"{_ROOM}.readable_job:create_readable_job", {}, _LIMITS)
        self._pdf = LimitedProcess(f"{_ROOM}.pdf_text_job:create_pdf_text_job", {}, _LIMITS)

    def close(self) -> None:
        self._threads.close()
        self._html.close()
        self._pdf.close()

    async def read(self, data: bytes, content_type: str) -> ReadableText:
        """Returns the title, perhaps empty, and the text of a page.

        `content_type` is the header of its answer. Raises WebError, and Overloaded.
        """
        kind, _, parameters = content_type.partition(";")
        kind = kind.strip().lower()
        label = _read_charset(parameters)
        if kind in _HTML:
            _check_extra("trafilatura", "web", "HTML")
            page = HtmlPage(data, find_charset(data, label, is_html=True))
            return await self._run(self._html, msgspec.msgpack.encode(page))
        if kind == _PDF:
            _check_extra("pypdfium2", "pdf", "PDFs")
            return await self._run(self._pdf, data)
        if not _is_text(kind):
            raise UnreadablePage(
                f"the page is of a type that cannot be read: {kind[:80] or 'none'}"
            )
        text = await self._threads.run(partial(decode_text, data, label))
        return ReadableText("", text[:MAX_CHARS])

    async def _run(self, process: LimitedProcess, job: bytes) -> ReadableText:
        try:
            return _READABLE.decode(await self._threads.run(partial(process.run, job)))
        except JobLost as lost:
            raise WebError(f"pages cannot be read now: {lost}") from lost
        except JobEnded as ended:
            raise WebError("the page cannot be read: it is too large or broken") from ended


def _check_extra(package: str, extra: str, noun: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UnreadablePage(f"this server cannot read {noun}: {install_hint(extra)}")


def _is_text(kind: str) -> bool:
    if kind.startswith("text/") or kind in _TEXTS:
        return True
    return kind.startswith("application/") and kind.endswith(_SUFFIXES)


def _read_charset(parameters: str) -> str | None:
    """Returns the charset among the parameters of a content type."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip()
    return None
