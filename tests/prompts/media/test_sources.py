"""The text of a URL names inline data, a file or another server."""

import base64
from collections.abc import Callable

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.fetching.sources import (
    FileSource,
    InlineSource,
    RemoteSource,
    read_inline,
    read_source,
)
from ouzel.prompts.media.picture import PictureLimits
from tests.prompts.media.files import LIMITS, plain

DATA = bytes(range(256))
TEXT = base64.b64encode(DATA).decode()


def inline(url: str, limits: PictureLimits = LIMITS) -> bytes:
    source = read_source(url, "field")
    assert isinstance(source, InlineSource)
    return read_inline(source, "field", limits)


def percents(data: bytes) -> str:
    return "".join(f"%{byte:02x}" for byte in data)


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{TEXT}",
        f"data:;base64,{TEXT}",
        f"data:text/plain;charset=utf-8;base64,{TEXT}",
        f"DATA:image/png;BASE64,{TEXT}",
        f"  data:image/png;base64,{TEXT}\n",
        f"data:image/png;base64,{TEXT.rstrip('=')}",
        f"data:image/png;base64,{TEXT[:60]}\r\n {TEXT[60:]}",
        "data:image/png;base64," + TEXT.replace("+", "-").replace("/", "_"),
        "data:image/png;base64," + TEXT.replace("+", "%2B").replace("/", "%2f").replace("=", "%3D"),
        f"image/png;base64,{TEXT}",
        f"base64,{TEXT}",
        f"anything: base64,{TEXT}",
        f"data:image/png,base64,{TEXT}",
        "data:image/png," + percents(DATA),
        "data:," + percents(DATA).upper().replace("%41", "A"),
    ],
)
def test_data_urls(url: str) -> None:
    assert inline(url) == DATA


PICTURES = {name: plain(file_format=name) for name in ("PNG", "JPEG", "WEBP", "GIF")}


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize(
    "write",
    [
        lambda text: text,
        lambda text: text.rstrip("="),
        lambda text: f"\n  {text}\n",
        lambda text: " " * 1000 + text,
        lambda text: "\r\n".join(text[begin : begin + 5] for begin in range(0, len(text), 5)),
        lambda text: text.replace("+", "-").replace("/", "_"),
        lambda text: text.replace("+", "%2B").replace("/", "%2f").replace("=", "%3D"),
    ],
)
def test_the_base64_of_a_picture_needs_no_scheme(name: str, write: Callable[[str], str]) -> None:
    assert inline(write(base64.b64encode(PICTURES[name]).decode())) == PICTURES[name]


def test_both_signatures_of_a_gif_are_known() -> None:
    for signature in (b"GIF87a", b"GIF89a"):
        data = signature + bytes(10)
        assert inline(base64.b64encode(data).decode()) == data


def test_bare_base64_that_breaks_off_its_alphabet_is_no_path() -> None:
    text = base64.b64encode(PICTURES["PNG"]).decode()
    with pytest.raises(InvalidRequest, match=r"^field must have valid base64"):
        inline(f"{text[:40]}!{text[40:]}")
    with pytest.raises(
        InvalidRequest, match=r"^field must be a data URL of ASCII characters, given 'ü' at 40"
    ):
        inline(f"{text[:40]}ü{text[40:]}")


@pytest.mark.parametrize(
    "text",
    [
        "/9j/holiday.png",
        "/9j/pictures/summer/one.jpg",
        "/9j/4AAQ",
        "/9j/4AAQSkZJ.RgABAQAAAQABAAD",
        "R0lGODlh.gif",
        "R0lGODlhüüüüüüüü",
        "UklGRgAAAABXQVZFAAAA",
        "iVBORw0KGgo/one.png",
        base64.b64encode(b"BM" + bytes(60)).decode(),
        base64.b64encode(b"%PDF-1.7" + bytes(60)).decode(),
        TEXT,
    ],
)
def test_a_text_that_begins_unlike_a_picture_is_a_path(text: str) -> None:
    assert read_source(text, "field") == FileSource(text)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("a%20b", b"a b"),
        ("%", b"%"),
        ("%2", b"%2"),
        ("%zz", b"%zz"),
        ("%%41", b"%A"),
        ("%4%41", b"%4A"),
    ],
)
def test_percents_that_escape_nothing_stand_for_themselves(text: str, data: bytes) -> None:
    assert inline(f"data:,{text}") == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A", "must have valid base64"),
        ("AAAAA", "must have valid base64"),
        ("AA=A", "must have valid base64"),
        ("=AAA", "must have valid base64"),
        ("AA!A", "must have valid base64"),
        ("AA%41", "must have valid base64"),
        ("data:image/png;base64,AAAA", "must have valid base64"),
        ("AAA\0", "must have valid base64"),
        ("AAAü", "must be a data URL of ASCII characters, given 'ü' at 3 of its data"),
        ("AAA\ud800", r"must be a data URL of ASCII characters, given '\\ud800' at 3 of its data"),
    ],
)
def test_malformed_base64_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^field {message}"):
        inline(f"data:image/png;base64,{text}")


@pytest.mark.parametrize("url", [f"data:;base64,{TEXT}", "data:," + percents(DATA)])
def test_a_long_data_url_is_refused_before_decoding(url: str) -> None:
    assert inline(url, PictureLimits(max_bytes=256, max_pixels=1)) == DATA
    with pytest.raises(
        InvalidRequest, match=r"^field must have <= 255 bytes \(max_media_bytes\), given 256$"
    ):
        inline(url, PictureLimits(max_bytes=255, max_pixels=1))


@pytest.mark.parametrize(
    "url", ["http://a.org/x.png", "HTTPS://a.org", "http:x", " http://a.org/?base64,AAAA "]
)
def test_urls_of_other_servers(url: str) -> None:
    assert read_source(url, "field") == RemoteSource(url.strip())


@pytest.mark.parametrize(
    ("url", "file_path"),
    [
        ("/images/zebra.jpeg", "/images/zebra.jpeg"),
        ("zebra.jpeg", "zebra.jpeg"),
        (" a b.png", " a b.png"),
        ("c:/x.png", "c:/x.png"),
        ("file:///images/zebra.jpeg", "/images/zebra.jpeg"),
        ("FILE://localhost/images/a%20b.png", "/images/a b.png"),
        ("file:/images/%C3%BC.png", "/images/ü.png"),
        ("file:images/x.png", "images/x.png"),
    ],
)
def test_paths_of_files(url: str, file_path: str) -> None:
    assert read_source(url, "field") == FileSource(file_path)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://a.org/x.png", "given the scheme 'ftp'"),
        ("sftp://a.org/x.png", "given the scheme 'sftp'"),
        ("gopher://127.0.0.1:6379/_x", "given the scheme 'gopher'"),
        ("javascript:alert(1)", "given the scheme 'javascript'"),
        ("blob:https://a.org/x", "given the scheme 'blob'"),
        ("", "given an empty text"),
        (" \n", "given an empty text"),
        ("data:image/png;base64", "with a comma before its data"),
        ("file://a.org/x.png", "without a host"),
        ("file://..", "without a host"),
    ],
)
def test_an_unknown_kind_of_url_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^field must be .*{message}"):
        read_source(url, "field")
