"""Text of others is shown without what a terminal would obey.

A model writes what its prompt leads it to, and so may a tool's result or the name of a file: sequences that begin with
ESC or a C1 control could rewrite the screen, set the clipboard or answer in the user's name.
"""

_KEPT = "\n\t"
_BIDIRECTIONAL = (
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)  # overrides: text would not stand where it is
_CONTROL_PICTURES = 0x2400
_SURROGATES = range(0xD800, 0xE000)  # of names that are not UTF-8


def _table() -> dict[int, str]:
    table = {code: chr(_CONTROL_PICTURES + code) for code in range(0x20) if chr(code) not in _KEPT}
    table[0x7F] = "\N{SYMBOL FOR DELETE}"
    table |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
    table |= {code: f"\\u{code:04x}" for code in _BIDIRECTIONAL}
    return table | dict.fromkeys(_SURROGATES, "\N{REPLACEMENT CHARACTER}")


_TABLE = _table()


def harmless(text: str) -> str:
    """Keeps line ends and tabs, and shows every other control character as a picture or by its number."""
    return text.replace("\r\n", "\n").translate(_TABLE)


def whole_characters(text: str) -> str:
    """Replaces halves of characters, which no request could hold."""
    return text.encode(errors="replace").decode()


def harmless_line(text: str) -> str:
    """Returns it in one line."""
    return harmless(text).replace("\n", "␊").replace("\t", " ")


def harmless_json(encoded: bytes) -> str:
    """Takes JSON, and returns the same value: what is harmful in its strings is escaped."""
    text = encoded.decode()
    return "".join(
        f"\\u{ord(char):04x}" if ord(char) in _TABLE and ord(char) >= 0x7F else char
        for char in text
    )
