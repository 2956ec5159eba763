"""Reads the texts of the PDFs of a chat, for a model that does not see pages.

Protocol
1. Chats are rendered in threads, which must not wait. A chat whose PDFs have not been read raises
   `TextsNeeded` instead of being rendered.
2. The caller reads the PDFs outside the event loop (`TextsNeeded.provide_prerequisite`), and
   renders the chat again within that context, where the texts are found.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.document_loader import DocumentLoader
from ouzel.prompts.media.documents import can_read_documents
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import ContentPart, DocumentPart
from ouzel.prompts.media_readers.document_parts import frame_file
from ouzel.prompts.media_readers.uploaded_files import MAX_FILES, MAX_TEXT_CHARS
from ouzel.prompts.messages import Message
from ouzel.worker_threads import PrerequisiteMissing

_MARK_CHARS = 20  # longest line above a page

_texts: ContextVar[Mapping[str, str]] = ContextVar("texts_of_documents")  # keys are URLs of parts


class TextsNeeded(PrerequisiteMissing):
    """Raised by the rendering of a chat with PDFs that have not been read yet."""

    def __init__(self, reader: "DocumentTextReader", parts: Sequence[DocumentPart]) -> None:
        super().__init__(f"{len(parts)} PDFs")
        self._reader = reader
        self._parts = parts

    def provide_prerequisite(self) -> AbstractAsyncContextManager[None]:
        return self._provide()

    @asynccontextmanager
    async def _provide(self) -> AsyncGenerator[None, None]:
        texts = await self._reader.read(self._parts)
        self.num_bytes = sum(map(len, texts.values()))
        token = _texts.set({**_texts.get({}), **texts})
        try:
            yield
        finally:
            _texts.reset(token)


class DocumentTextReader:
    """Reads the texts of PDFs. It belongs to one event loop, but `insert_texts` is called from many
    threads.
    """

    def __init__(self, loader: MediaLoader) -> None:
        self._loader = loader
        self._documents = DocumentLoader(loader)

    @property
    def can_read(self) -> bool:
        return can_read_documents()

    def close(self) -> None:
        self._documents.close()
        self._loader.close()

    def insert_texts(self, messages: list[Message], media: Sequence[ContentPart]) -> list[Message]:
        """Returns normalised messages with texts in the place of PDFs.

        `media` are the media of the messages. Raises TextsNeeded.
        """
        parts = [part for part in media if isinstance(part, DocumentPart)]
        found = _texts.get({})
        if any(part.url not in found for part in parts):
            raise TextsNeeded(self, parts)
        return [{**message, "content": _replace(message["content"], found)} for message in messages]

    async def read(self, parts: Sequence[DocumentPart]) -> dict[str, str]:
        """Returns the texts by the URLs of the parts. Raises InvalidRequest or Overloaded."""
        if len(parts) > MAX_FILES:
            raise InvalidRequest(
                f"must be one of <= {MAX_FILES} PDFs in a request, given {len(parts)}",
                field=parts[MAX_FILES].path,
            )
        pages = await self._documents.load_texts(
            parts, max_chars=MAX_TEXT_CHARS, chars_per_page=_MARK_CHARS
        )
        for part in parts:
            if not any(pages[part.url]):
                raise InvalidRequest(
                    f"must be a PDF with text, given {len(pages[part.url])} pages without any: "
                    "this model reads text only, a scan needs a model that reads pictures",
                    field=part.path,
                )
        return {url: _join_pages(texts) for url, texts in pages.items()}


def _replace(content: object, texts: Mapping[str, str]) -> object:
    if not isinstance(content, list):
        return content
    return [
        {"type": "text", "text": _write_text(part["media"], texts)}
        if part["type"] == "document"
        else part
        for part in content
    ]


def _write_text(part: DocumentPart, texts: Mapping[str, str]) -> str:
    text = texts[part.url]
    return text if part.heads is None else frame_file(part.heads, text)


def _join_pages(texts: Sequence[str]) -> str:
    """Joins the texts of pages, each below a line with its number."""
    return "\n".join(
        f"[Page {number}]\n{text}" if text else f"[Page {number}: no text]"
        for number, text in enumerate(texts, 1)
    )
