"""Makes the PNG icons of the playground from icon.svg.

uv run python -m tools.pictures.icons
"""

import base64
import io
import sys

from PIL import Image
from playwright.sync_api import Browser

from ouzel.playground import DIRECTORY
from tests.playground.chromium import chromium_path, running_browser

_ICONS = DIRECTORY / "icons"
_COLOURS = 64  # the number of colours in a file
_BACKGROUND = "#134e4a"  # the colour of the disc
# Systems cut a maskable icon to their own shape: only the middle 80 % are sure to be seen. The disc
# may be wider, because its edge has the colour of the background.
_MASKABLE_SHARE = 0.9


def _draw(browser: Browser, size: int, *, share: float = 1.0, background: str = "") -> bytes:
    """Returns the icon as PNG, with its drawing in the middle of `share` of the width."""
    icon = base64.b64encode((DIRECTORY / "icon.svg").read_bytes()).decode()
    page = browser.new_page(viewport={"width": size, "height": size})
    page.set_content(
        f'<body style="margin:0;display:grid;place-items:center;height:100vh;'
        f'background:{background or "transparent"}">'
        f'<img width="{size * share}" height="{size * share}" '
        f'src="data:image/svg+xml;base64,{icon}">'
    )
    picture = page.screenshot(omit_background=True)
    page.close()
    return _shrink(picture)


def _shrink(png: bytes) -> bytes:
    """Returns the picture with few colours, which the flat drawing does not miss."""
    picture = Image.open(io.BytesIO(png)).quantize(_COLOURS, Image.Quantize.FASTOCTREE)
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    path = chromium_path()
    if path is None:
        sys.exit("no Chromium is installed here")
    _ICONS.mkdir(exist_ok=True)
    with running_browser(path) as browser:
        for size in (192, 512):
            (_ICONS / f"{size}.png").write_bytes(_draw(browser, size))
        maskable = _draw(browser, 512, share=_MASKABLE_SHARE, background=_BACKGROUND)
        (_ICONS / "maskable.png").write_bytes(maskable)


if __name__ == "__main__":
    main()
