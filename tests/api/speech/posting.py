"""Posts forms with a sound file."""

import httpx

PATH = "/v1/audio/transcriptions"
TRANSLATIONS = "/v1/audio/translations"
WORDS = b"one two three"
Fields = dict[str, str | list[str]]


def post_sound(
    http: httpx.Client, fields: Fields | None = None, *, path: str = PATH, data: bytes = WORDS
) -> httpx.Response:
    return http.post(path, files={"file": ("speech.wav", data)}, data=fields)
