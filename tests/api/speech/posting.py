"""Posts forms with a sound file."""

import httpx

PATH = "/v1/audio/transcriptions"
TRANSLATIONS = "/v1/audio/translations"
WORDS = b"one two three"
Fields = dict[str, str | list[str]]


def post_sound(
    http: httpx.Client, path: str = PATH, data: bytes = WORDS, **fields: str | list[str]
) -> httpx.Response:
    """Posts a form; a keyword `a__` is the field `a[]`."""
    named = {
        (f"{name[:-2]}[]" if name.endswith("__") else name): value for name, value in fields.items()
    }
    return http.post(path, files={"file": ("speech.wav", data)}, data=named)
