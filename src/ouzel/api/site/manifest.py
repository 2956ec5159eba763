"""Serves the web app manifest, by which browsers install the page like a program."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.site.content import Content
from ouzel.api.site.headers import PAGE_HEADERS
from ouzel.api.site.language import choose_language
from ouzel.playground import LANGUAGES, RIGHT_TO_LEFT, read_texts

NAME = "manifest.webmanifest"
_MEDIA_TYPE = "application/manifest+json"
_COLOUR = "#134e4a"  # the background of the icon
# (file, sizes, purpose); browsers that install pages want PNG files of these sizes
_ICONS = (
    ("icon.svg", "any", "any"),
    ("icons/192.png", "192x192", "any"),
    ("icons/512.png", "512x512", "any"),
    ("icons/maskable.png", "512x512", "maskable"),
)


class Manifest:
    def __init__(self, root_path: str) -> None:
        self._manifests = {
            language: Content(msgspec.json.encode(_describe(language, root_path)), _MEDIA_TYPE)
            for language in LANGUAGES
        }

    async def __call__(self, request: Request) -> Response:
        manifest = self._manifests[choose_language(request, LANGUAGES)]
        return manifest.answer(request, PAGE_HEADERS)


def _describe(language: str, root_path: str) -> dict[str, object]:
    root = f"{root_path}/"
    return {
        "name": "Ouzel",
        "short_name": "Ouzel",
        "description": read_texts(language)["page.description"],
        "lang": language,
        "dir": "rtl" if language in RIGHT_TO_LEFT else "ltr",
        "id": root,
        "start_url": root,
        "scope": root,
        "display": "standalone",
        "theme_color": _COLOUR,
        "background_color": _COLOUR,
        "icons": [
            {
                "src": f"{root}playground/{name}",
                "sizes": sizes,
                "type": "image/svg+xml" if name.endswith(".svg") else "image/png",
                "purpose": purpose,
            }
            for name, sizes, purpose in _ICONS
        ],
    }
