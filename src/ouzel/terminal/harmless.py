"""Shows text from strangers without characters that a terminal would obey.

The text of a model, the result of a tool or the name of a file may hold sequences that begin with
ESC or a C1 control: they could rewrite the screen, set the clipboard or type in the user's name.
"""

_KEPT = "\n\t"
# Overrides of the text's direction, which would show text in another place.
_BIDIRECTIONAL = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROL_PICTURES = 0x2400
_SURROGATES = range(0xD800, 0xE000)  # Python's form of names that are not UTF-8


def _table() -> dict[int, str]:
    table = {code: chr(_CONTROL_PICTURES + code) for code in range(0x20) if chr(code) not in _KEPT}
    table[0x7F] = "\N{SYMBOL FOR DELETE}"
    table |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
    table |= {code: f"\\u{code:04x}" for code in _BIDIRECTIONAL}
    return table | dict.fromkeys(_SURROGATES, "\N{REPLACEMENT CHARACTER}")


_TABLE = _table()


def harmless(text: str) -> str:
    """Replaces control characters by pictures or numbers, except line ends and tabs."""
    return text.replace("\r\n", "\n").translate(_TABLE)


def whole_characters(text: str) -> str:
    """Replaces lone surrogates by question marks: JSON in UTF-8 cannot contain them."""
    return text.encode(errors="replace").decode()


def harmless_line(text: str) -> str:
    """Makes text harmless, and shows its line ends and tabs as characters of one line."""
    return harmless(text).replace("\n", "␊").replace("\t", " ")


def harmless_json(encoded: bytes) -> str:
    """Escapes harmful characters in the strings of encoded JSON; the value stays the same."""
    text = encoded.decode()
    return "".join(
        f"\\u{ord(char):04x}" if ord(char) in _TABLE and ord(char) >= 0x7F else char
        for char in text
    )
