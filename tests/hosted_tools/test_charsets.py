"""Pages are decoded by the charsets of the web only."""

import pytest

from ouzel.hosted_tools.web_search.charsets import decode_text, find_charset, read_label


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("UTF-8", "utf-8"),
        ('"utf8"', "utf-8"),
        ("latin1", "cp1252"),
        ("windows-1251", "cp1251"),
        ("Shift_JIS", "cp932"),
        ("gb2312", "gb18030"),
        ("big5", "big5hkscs"),
        ("euc-kr", "cp949"),
        ("punycode", None),
        ("idna", None),
        ("zlib", None),
        ("unicode_escape", None),
        ("rot13", None),
        ("utf-7", None),
        ("a\0b", None),
        ("x" * 100, None),
        ("", None),
        (None, None),
    ],
)
def test_only_charsets_of_the_web_are_used(label: str | None, charset: str | None) -> None:
    assert read_label(label) == charset


@pytest.mark.parametrize(
    ("data", "label", "charset"),
    [
        (b"\xef\xbb\xbfx", "latin1", "utf-8"),
        (b"\xff\xfex\0", None, "utf-16-le"),
        (b"<meta charset='shift_jis'>", "utf-8", "utf-8"),
        (b"<meta charset='shift_jis'>", None, "cp932"),
        (b'<META http-equiv=x content="text/html; charset=koi8-r">', None, "koi8-r"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=punycode>", "zlib", None),
        (b"<html>", None, None),
        (b"<meta" * 400, None, None),
    ],
)
def test_marks_come_before_headers_and_headers_before_elements(
    data: bytes, label: str | None, charset: str | None
) -> None:
    assert find_charset(data, label, is_html=True) == charset


def test_bytes_outside_the_charset_are_replaced() -> None:
    assert decode_text(b"a\xffb", None) == "a\ufffdb"
    assert decode_text(b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", "latin1") == "grüße"
    assert decode_text(b"gr\xfc\xdfe", "latin1") == "grüße"
