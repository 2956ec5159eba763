"""Writes PDFs by hand."""

import zlib
from collections.abc import Mapping, Sequence

Rgb = tuple[int, int, int]
Size = tuple[float, float]

COLOURS: tuple[Rgb, ...] = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0))
_FIRST = 3  # objects 1 and 2 are the catalog and the tree of pages


def pdf(objects: Mapping[int, bytes], trailer: bytes = b"") -> bytes:
    """Returns a PDF of the objects, by number, from 1 without a gap; object 1 is the catalog."""
    file, places = bytearray(b"%PDF-1.7\n"), list[int]()
    for number in sorted(objects):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, objects[number])
    at = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    file += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(file) + b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (
        len(places) + 1,
        trailer,
        at,
    )


def stream(content: bytes, fields: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (fields, len(content), content)


def packed(content: bytes, fields: bytes = b"") -> bytes:
    return stream(zlib.compress(content, 9), b"/Filter/FlateDecode" + fields)


def filled(colour: Rgb, size: Size) -> bytes:
    """Returns a page's content that fills the page, except its upper left quarter."""
    red, green, blue = (value / 255 for value in colour)
    width, height = size
    return b"%g %g %g rg 0 0 %g %g re %g 0 %g %g re f" % (
        red, green, blue, width, height / 2, width / 2, width / 2, height
    )  # fmt: skip


def paper(
    *pages: bytes,
    size: Size = (72, 36),
    of_page: bytes = b"",
    of_catalog: bytes = b"",
    further: Sequence[bytes] = (),
) -> bytes:
    """Returns a PDF with one page for each content.

    `size` is in points. The objects of `further` have the numbers after the last page.
    """
    width, height = size
    numbers = range(_FIRST, _FIRST + 2 * len(pages), 2)
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R%s>>" % of_catalog,
        2: b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids),
    }
    for number, content in zip(numbers, pages, strict=True):
        box = b"/MediaBox[0 0 %g %g]" % (width, height)
        objects[number] = b"<</Type/Page/Parent 2 0 R%s%s/Contents %d 0 R>>" % (
            box,
            of_page,
            number + 1,
        )
        objects[number + 1] = packed(content)
    return pdf(objects | dict(enumerate(further, len(objects) + 1)))


def coloured(num_pages: int, size: Size = (72, 36)) -> bytes:
    """Returns a PDF whose pages have `COLOURS`, in turn."""
    return paper(
        *(filled(COLOURS[number % len(COLOURS)], size) for number in range(num_pages)), size=size
    )


def typed(*pages: str) -> bytes:
    """Returns a PDF whose pages have these texts, in a font that is not in the file."""
    font = b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    contents = [b"BT /F 9 Tf 20 100 Td (%s) Tj ET" % text.encode() for text in pages]
    return paper(*contents, size=(600, 200), of_page=font)
