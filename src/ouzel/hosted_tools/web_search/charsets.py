"""Decodes the bytes of web pages, whose charsets come from strangers.

Only charsets of web pages are used: Python has others, such as punycode, which take minutes for a
few megabytes.
"""

import codecs
import re

# Python's names of the charsets that browsers know, and the wider charset by which they read one.
_WEB_CHARSETS = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "utf-16-le": "utf-16-le",
    "utf-16-be": "utf-16-be",
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "big5hkscs": "big5hkscs",
    "shift_jis": "cp932",
    "cp932": "cp932",
    "euc_jp": "euc_jp",
    "iso2022_jp": "iso2022_jp",
    "euc_kr": "cp949",
    "cp949": "cp949",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "mac-roman": "mac-roman",
    "mac-cyrillic": "mac-cyrillic",
    "cp866": "cp866",
    "cp874": "cp874",
    **{f"cp{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"iso8859-{number}": f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14)},
    **{f"iso8859-{number}": f"iso8859-{number}" for number in (15, 16)},
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAX_LABEL = 40
_SEARCHED = 2048  # bytes in which an HTML page names its charset
_IN_META = re.compile(rb"<meta[^>]{0,500}?charset\s{0,8}=\s{0,8}[\"']?\s{0,8}([\w.:-]{1,40})", re.I)


def find_charset(data: bytes, label: str | None, *, is_html: bool) -> str | None:
    """Returns Python's name of the charset of a page; None if nothing names a known one.

    A mark at the beginning counts most, then the header's label, then a `meta` element.
    """
    for mark, marked in _MARKS:
        if data.startswith(mark):
            return marked
    charset = read_label(label)
    if charset is not None or not is_html:
        return charset
    found = _IN_META.search(data[:_SEARCHED])
    charset = read_label(found[1].decode("ascii", "replace")) if found else None
    # The element could be read, so the page is not in UTF-16.
    return "utf-8" if charset is not None and charset.startswith("utf-16") else charset


def read_label(label: str | None) -> str | None:
    """Returns Python's name of a charset of web pages; None for other labels."""
    if not label or len(label) > _MAX_LABEL:
        return None
    try:
        return _WEB_CHARSETS.get(codecs.lookup(label.strip("\"' ")).name)
    except (LookupError, ValueError):  # a null byte gives a ValueError
        return None


def decode_text(data: bytes, label: str | None) -> str:
    """Returns a plain text; bytes that are not in its charset are replaced."""
    charset = find_charset(data, label, is_html=False) or "utf-8"
    return data.decode(charset, "replace").removeprefix("\ufeff")
