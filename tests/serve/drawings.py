"""Draws pictures about which the demo model of pictures can answer."""

import io
from base64 import b64encode

from PIL import Image, ImageDraw


def shape(name: str, color: str, size: tuple[int, int] = (160, 160)) -> Image.Image:
    """Draws a large circle or square in the middle of a white picture."""
    (width, height), reach = size, 0.3 * min(size)
    image = Image.new("RGB", size, "white")
    draw, box = (
        ImageDraw.Draw(image),
        (width / 2 - reach, height / 2 - reach, width / 2 + reach, height / 2 + reach),
    )
    (draw.ellipse if name == "circle" else draw.rectangle)(box, fill=color)
    return image


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def data_url(data: bytes) -> str:
    """Says PNG of everything, as some clients do; the bytes decide."""
    return f"data:image/png;base64,{b64encode(data).decode()}"
