"""Runs `ouzel chat` in a terminal, and takes a picture of a page with the terminal's screen."""

import tempfile
from html import escape
from pathlib import Path

import pyte
from playwright.sync_api import Browser

from tests.serve.running import RunningServer
from tests.terminal_chat.terminal_program import chatting

_COLUMNS, _LINES = 84, 18
# lines to type, each with a text that the answer to it contains
_LINES_AND_ANSWERS = (
    ("Hello!", "help you?"),
    ("/stats", "tokens"),
    ("/set temperature 5", "temperature"),
    ("/set temperature 0.2", "0.2"),
    ("What is 17 plus 25?", "= 42"),
)
_COLOURS = {
    "default": "#e6eeec",
    "black": "#111716",
    "red": "#ff9f94",
    "green": "#86e0a3",
    "brown": "#fbbf24",  # pyte's name of yellow
    "blue": "#8ab4f8",
    "magenta": "#f9a8d4",
    "cyan": "#5eead4",
    "white": "#e6eeec",
    "brightblack": "#9fb0ac",
}
_STYLE = """
body { margin: 0; background: #0b0f0e; padding: 24px; display: inline-block }
pre { margin: 0; padding: 16px 20px; border-radius: 10px; background: #111716; color: #e6eeec;
  border: 1px solid #33433f; font: 15px/1.35 "DejaVu Sans Mono", monospace }
"""


def take_terminal(browser: Browser, server: RunningServer, path: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        chatting(
            "--url", server.url, state=Path(directory), columns=_COLUMNS, lines=_LINES
        ) as program,
    ):
        for line, answer in _LINES_AND_ANSWERS:
            program.enter(line)
            program.wait_for(answer)
        program.wait_for_prompt()
        screen = _draw_screen(program.raw)
    page = browser.new_page(device_scale_factor=2)
    page.set_content(f"<style>{_STYLE}</style><pre>{_render_html(screen)}</pre>")
    page.locator("body").screenshot(path=path)
    page.close()


def _draw_screen(written: bytes) -> pyte.Screen:
    screen = pyte.Screen(_COLUMNS, _LINES)
    pyte.ByteStream(screen).feed(written)
    return screen


def _render_html(screen: pyte.Screen) -> str:
    lines = (
        "".join(_cell(screen.buffer[row][column]) for column in range(_COLUMNS))
        for row in range(_LINES)
    )
    return "\n".join(lines)


def _cell(character: pyte.screens.Char) -> str:
    colour = _COLOURS.get(character.fg, f"#{character.fg}")
    weight = "font-weight:700;" if character.bold else ""
    return f'<span style="color:{colour};{weight}">{escape(character.data)}</span>'
