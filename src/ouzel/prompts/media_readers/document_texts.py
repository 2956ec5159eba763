"""Reads the texts of the documents of a chat: Word files and texts, and PDFs for a model that does
not see pages.

Protocol
1. Chats are rendered in threads, which must not wait. A chat whose documents have not been read
   raises `TextsNeeded` instead of being rendered.
2. The caller reads the documents outside the event loop (`TextsNeeded.provide_prerequisite`), and
   renders the chat again within that context, where the texts are found.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import assert_never

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.document import PdfFile
from ouzel.prompts.media.documents import can_read_documents
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import ContentPart, DocumentPart
from ouzel.prompts.media.text_loader import Loaded, TextLoader
from ouzel.prompts.media_readers.document_parts import frame_file
from ouzel.prompts.media_readers.uploaded_files import MAX_FILES, MAX_TEXT_CHARS
from ouzel.prompts.messages import Message
from ouzel.worker_threads import PrerequisiteMissing

_MARK_CHARS = 20  # longest line above a page

# The text of a document, or a PDF whose pages the model sees; keys are URLs of parts.
_Contents = Mapping[str, str | bytes]
_contents: ContextVar[_Contents] = ContextVar("contents_of_documents")


class TextsNeeded(PrerequisiteMissing):
    """Raised by the rendering of a chat with documents that have not been read yet."""

    def __init__(self, reader: "DocumentTextReader", parts: Sequence[DocumentPart]) -> None:
        super().__init__(f"{len(parts)} documents")
        self._reader = reader
        self._parts = parts

    def provide_prerequisite(self) -> AbstractAsyncContextManager[None]:
        return self._provide()

    @asynccontextmanager
    async def _provide(self) -> AsyncGenerator[None, None]:
        contents = await self._reader.read(self._parts)
        self.num_bytes = sum(map(len, contents.values()))
        token = _contents.set({**_contents.get({}), **contents})
        try:
            yield
        finally:
            _contents.reset(token)


class DocumentTextReader:
    """Reads the texts of documents. It belongs to one event loop, but `insert_texts` is called from
    many threads.
    """

    def __init__(self, loader: MediaLoader, *, keeps_pdfs: bool = False) -> None:
        """`keeps_pdfs` leaves PDFs to the reader of images, for a model that sees their pages."""
        self._loader = loader
        self._keeps_pdfs = keeps_pdfs
        self._texts = TextLoader(loader, keeps_pdfs=keeps_pdfs)

    @property
    def can_read(self) -> bool:
        """Tells whether PDFs can be read, beside other documents."""
        return can_read_documents()

    def close(self) -> None:
        self._texts.close()
        self._loader.close()

    def insert_texts(self, messages: list[Message], media: Sequence[ContentPart]) -> list[Message]:
        """Returns normalised messages with texts in the place of documents.

        `media` are the media of the messages. Raises TextsNeeded.
        """
        parts = [part for part in media if isinstance(part, DocumentPart) and self._reads(part)]
        if not parts:
            return messages
        found = _contents.get({})
        if any(part.url not in found for part in parts):
            raise TextsNeeded(self, parts)
        return [{**message, "content": _replace(message["content"], found)} for message in messages]

    def _reads(self, part: DocumentPart) -> bool:
        return not (self._keeps_pdfs and part.is_pdf)

    async def read(self, parts: Sequence[DocumentPart]) -> dict[str, str | bytes]:
        """Returns the texts by the URLs of the parts, or the files of PDFs that are kept.

        Raises InvalidRequest or Overloaded.
        """
        if len(parts) > MAX_FILES:
            raise InvalidRequest(
                f"must be one of <= {MAX_FILES} documents in a request, given {len(parts)}",
                field=parts[MAX_FILES].path,
            )
        loaded = await self._texts.load(parts, max_chars=MAX_TEXT_CHARS, chars_per_page=_MARK_CHARS)
        paths = {part.url: part.path for part in reversed(parts)}
        return {url: _make_content(each, paths[url]) for url, each in loaded.items()}


def _make_content(loaded: Loaded, path: str) -> str | bytes:
    """Returns the text of a document, or the file of a PDF that is kept. Raises InvalidRequest."""
    match loaded:
        case str():
            return loaded
        case PdfFile(data=data):
            return data
        case _ if any(loaded):
            return _join_pages(loaded)
        case _:
            raise InvalidRequest(
                f"must be a PDF with text, given {len(loaded)} pages without any: "
                "a scan needs a model that reads pictures, and this model reads none",
                field=path,
            )


def _replace(content: object, found: _Contents) -> object:
    if not isinstance(content, list):
        return content
    return [
        _insert(part["media"], found) if part["type"] == "document" else part for part in content
    ]


def _insert(part: DocumentPart, found: _Contents) -> Message:
    content = found.get(part.url)
    match content:
        case None:
            return {"type": "document", "media": part}
        case bytes():
            return {"type": "document", "media": replace(part, data=content, is_pdf=True)}
        case str():
            text = content if part.heads is None else frame_file(part.heads, content)
            return {"type": "text", "text": text}
        case unreachable:
            assert_never(unreachable)


def _join_pages(texts: Sequence[str]) -> str:
    """Joins the texts of pages, each below a line with its number."""
    return "\n".join(
        f"[Page {number}]\n{text}" if text else f"[Page {number}: no text]"
        for number, text in enumerate(texts, 1)
    )
