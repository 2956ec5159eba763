"""PDFs become their pages or refusals that name the part, within limits."""

import asyncio
import base64
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray
from PIL.Image import Image

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.document import Document
from ouzel.prompts.media.document_loader import DocumentLoader
from ouzel.prompts.media.parts import DocumentPart, MediaPart
from ouzel.prompts.media_readers.document_reader import DocumentReader
from ouzel.prompts.media_readers.prepared_images import make_pixel_cache
from tests.api.seeing import FILES
from tests.prompts.media.files import PATH, plain
from tests.prompts.media.papers import COLOURS, coloured, packed, paper, pdf, stream
from tests.prompts.media.servers import loader
from tests.prompts.vision.checkpoints import loaded

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the loop that owns the pages' process

Pixels = NDArray[np.uint8]

A4 = (595, 842)
INSIDE = b"/Type/XObject/Subtype/Form/BBox[0 0 72 72]"


@asynccontextmanager
async def loading(**options: object) -> AsyncIterator[DocumentLoader]:
    media = loader(**options)  # type: ignore[arg-type]  # fields of MediaConfig
    documents = DocumentLoader(media)
    try:
        yield documents
    finally:
        documents.close()
        media.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def documents() -> AsyncIterator[DocumentLoader]:
    async with loading() as documents:
        yield documents


def make_url(data: bytes) -> str:
    return "data:;base64," + base64.b64encode(data).decode()


async def load_and_render(data: bytes, documents: DocumentLoader) -> tuple[Document, list[Pixels]]:
    """Loads a PDF as a request does, and renders all of its pages."""
    [document] = await documents.load([DocumentPart(PATH, make_url(data))], num_pictures=0)
    return document, await documents.render(document, range(len(document.pages)), np.array)


async def test_pictures_do_not_wait_for_documents() -> None:
    media = loader(max_media_memory_bytes=1024)  # too little for two jobs at a time
    documents = DocumentLoader(media)
    begun, go_on = Event(), Event()

    def wait(_: Image) -> bool:
        begun.set()
        return go_on.wait(10)

    [document] = await documents.load([DocumentPart(PATH, make_url(coloured(1)))], num_pictures=0)
    rendering = asyncio.create_task(documents.render(document, [0], wait))
    try:
        assert await asyncio.to_thread(begun.wait, 10)
        pictures = await media.load([MediaPart(PATH, make_url(plain()))])

        assert await asyncio.wait_for(
            media.decode(pictures, lambda picture: picture.format), 5
        ) == ["PNG"]
    finally:
        go_on.set()
        assert await rendering == [True]
        documents.close()
        media.close()


async def test_pages_are_rendered_in_their_order(documents: DocumentLoader) -> None:
    document, pages = await load_and_render(coloured(4), documents)

    assert document.pages == ((150, 75),) * 4  # 150 x 75 pixels: 1 x 0.5 inches
    assert [page.shape for page in pages] == [(75, 150, 3)] * 4
    assert [tuple(page[60, 120].tolist()) for page in pages] == [*COLOURS]
    assert all((page[15, 30] == 255).all() for page in pages)


async def test_pages_are_shown_as_they_are_turned(documents: DocumentLoader) -> None:
    document, [page] = await load_and_render(
        paper(b"1 0 0 rg 0 0 36 18 re f", of_page=b"/Rotate 90"), documents
    )

    assert document.pages == ((75, 150),)
    assert page[30, 15].tolist() == [255, 0, 0] and page[120, 60].tolist() == [255, 255, 255]


@pytest.mark.parametrize(
    ("size", "page"),
    [
        (A4, (1239, 1754)),
        ((2384, 3370), (2173, 3072)),
        ((14_400, 1), (3072, 1)),
        ((0.01, 0.01), (1, 1)),
    ],
    ids=["A4", "A0", "a line", "a dot"],
)
async def test_pages_have_150_pixels_to_the_inch_where_they_may(
    size: tuple[float, float], page: tuple[int, int], documents: DocumentLoader
) -> None:
    document, [pixels] = await load_and_render(coloured(1, size), documents)

    assert document.pages == (page,)
    assert pixels.shape == (page[1], page[0], 3)


async def test_a_page_has_no_more_pixels_than_it_may() -> None:
    async with loading(max_media_pixels=1_000_000) as documents:
        document, [pixels] = await load_and_render(coloured(1, A4), documents)

    assert document.pages == ((840, 1189),)
    assert pixels.shape == (1189, 840, 3)


async def test_forms_are_shown_as_they_are_filled_in_and_nothing_is_done(
    documents: DocumentLoader,
) -> None:
    does = b"/AA<</O<</S/JavaScript/JS(app.alert(1))>>/C<</S/Launch/F(/bin/ls)>>>>/Annots[5 0 R]"
    box = (
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(hi)/Rect[0 0 36 18]/MK<</BG[0 0 1]>>/F "
        b"4/AP<</N 6 0 R>>>>"
    )
    shown = packed(b"0 0 1 rg 0 0 36 18 re f", b"/Type/XObject/Subtype/Form/BBox[0 0 36 18]")

    form = b"/AcroForm<</Fields[5 0 R]>>/OpenAction<</S/JavaScript/JS(app.alert(1))>>"
    _, [page] = await load_and_render(
        paper(b"", of_page=does, of_catalog=form, further=[box, shown]), documents
    )

    assert page[70, 10].tolist() == [0, 0, 255] and page[10, 10].tolist() == [255, 255, 255]


def of_pages(tree: bytes, *further: bytes) -> bytes:
    return pdf(dict(enumerate([b"<</Type/Catalog/Pages 2 0 R>>", tree, *further], 1)))


def encrypted() -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>"
    lock = b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"00" * 32, b"11" * 32)
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        3: page,
        4: lock,
    }
    return pdf(objects, b"/Encrypt 4 0 R/ID[<00><00>]")


def fine_tiles() -> bytes:
    tile = (
        b"/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep 0.00001/YStep "
        b"0.00001/Resources<<>>"
    )
    fill, of_page = b"/Pattern cs /P scn 0 0 72 36 re f", b"/Resources<</Pattern<</P 5 0 R>>>>"
    return paper(fill, of_page=of_page, further=[packed(b"0 0 1 1 re f", tile)])


NOISE = np.random.default_rng(1).integers(0, 256, 50_000, np.uint8).tobytes()
BROKEN = "must be a PDF that is complete, given a file that is cut off or broken"
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "must be a PDF, given 0 bytes of another format"),
    "a picture": (plain(), "must be a PDF, given "),
    "a header": (b"%PDF-1.7\n", BROKEN),
    "a beginning": (coloured(3)[:-300], BROKEN),
    "noise": (b"%PDF-1.7\n" + NOISE, BROKEN),
    "encrypted": (encrypted(), "must be a PDF without a password, given an encrypted file"),
    "no pages": (of_pages(b"<</Type/Pages/Count 0/Kids[]>>"), "must be a PDF "),
    "pages within themselves": (of_pages(b"<</Type/Pages/Count 2/Kids[2 0 R 2 0 R]>>"), BROKEN),
    "too many pages": (
        of_pages(
            b"<</Type/Pages/Count 100000/Kids[%s]>>" % (b"3 0 R " * 100_000),
            b"<</Type/Page/Parent 2 0 R>>",
        ),
        (
            "must be a PDF of <= 16 pages: a request has <= 16 pictures (max_images) and "
            "each page is one"
        ),
    ),
    "large pages": (
        coloured(1, (14_401, 72)),
        "must be a PDF with pages of <= 14400 points a side, given 14401x72 of",
    ),
    "a bomb": (paper(b"q " * 6 * 10**6), "must be a PDF that is rendered within 384 MiB of memory"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_files_are_refused_by_the_name_of_their_part(
    name: str, documents: DocumentLoader
) -> None:
    data, complaint = HOSTILE[name]
    began = time.process_time()

    with pytest.raises(InvalidRequest) as raised:
        await load_and_render(data, documents)

    assert str(raised.value).startswith(f"{PATH} {complaint}")
    assert time.process_time() - began < 1


async def test_rendering_has_a_limit_of_time() -> None:
    async with loading(pdf_timeout_s=0.3) as documents:
        with pytest.raises(InvalidRequest) as raised:
            await load_and_render(fine_tiles(), documents)

    assert str(raised.value) == f"{PATH} must be a PDF that is rendered in <= 0.3 s (pdf_timeout_s)"


DEEP: dict[str, bytes] = {
    "lists": paper(b"", of_page=b"/X" + b"[" * 10**5 + b"]" * 10**5),
    "a form within itself": paper(
        b"/F Do",
        of_page=b"/Resources<</XObject<</F 5 0 R>>>>",
        further=[stream(b"/F Do", INSIDE + b"/Resources<</XObject<</F 5 0 R>>>>")],
    ),
}


@pytest.mark.parametrize("name", DEEP)
async def test_too_deeply_nested_content_is_left_out(name: str, documents: DocumentLoader) -> None:
    _, [page] = await load_and_render(DEEP[name], documents)

    assert (page == 255).all()


async def test_a_file_that_several_parts_name_is_opened_once_and_counted_each_time(
    documents: DocumentLoader,
) -> None:
    url = make_url(coloured(3))
    parts = [DocumentPart(f"{number}", url) for number in range(2)]

    first, second = await documents.load(parts, num_pictures=10)
    with pytest.raises(InvalidRequest) as raised:
        await documents.load(parts, num_pictures=11)
    with pytest.raises(
        InvalidRequest, match=r"^1 must be one of <= 16 pictures in a request \(max_images\)"
    ):
        await documents.load(parts, num_pictures=15)

    assert first is second
    assert str(raised.value) == (
        "1 must be a PDF of <= 2 pages: a request has <= 16 pictures (max_images) and each page "
        "is one, given 3"
    )


async def test_cached_pages_are_not_rendered_again(tmp_path: Path) -> None:
    part = DocumentPart(PATH, make_url(coloured(2, (72, 72))))
    async with loading() as documents:
        reader = DocumentReader(loaded(tmp_path, FILES), documents, make_pixel_cache())
        [document] = await reader.load([part], num_pictures=0)
        [first] = await reader.prepare([document])
    # The process that renders pages has ended.

    [second] = await reader.prepare([document])

    assert first == second and len(first) == 2
    assert len({page.inputs[0].digest for page in first}) == 2


async def test_without_the_extra_pdfs_are_refused(
    monkeypatch: pytest.MonkeyPatch, documents: DocumentLoader
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)

    with pytest.raises(InvalidRequest, match="this server needs its extra pdf"):
        await load_and_render(coloured(1), documents)
