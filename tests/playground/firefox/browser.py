"""Starts the machine's Firefox. Playwright drives it by WebDriver BiDi, Firefox's own protocol."""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright

# 1: a missing Firefox fails tests that would else be skipped
REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_FIREFOX"
# firefox: all tests of the playground run in Firefox
CHOICE_VARIABLE = "OUZEL_TESTS_BROWSER"
_NAMES = ("firefox-esr", "firefox")
_ROOT = Path(__file__).parents[3]
_COLOURS = {"dark": 0, "light": 1}
_PREFERENCES: dict[str, str | float | bool] = {
    "app.update.disabledForTesting": True,
    "browser.download.alwaysOpenPanel": False,  # the panel would take the keys from the page
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "media.cubeb.force_mock_context": True,  # sounds are played, though there is no device for them
    "media.navigator.permission.disabled": True,  # every page may use the microphone
    "media.navigator.streams.fake": True,  # the microphone gives a tone
    "media.peerconnection.ice.loopback": True,  # attacks reach a host on this machine
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


def firefox_path() -> Path | None:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return None if found is None else Path(found)


@contextmanager
def running_firefox(
    playwright: Playwright, path: Path, *, colours: str = "light"
) -> Iterator[Browser]:
    """Starts the Firefox at `path`, which prefers light or dark colours, behind the bridge."""
    with tempfile.TemporaryDirectory() as directory:
        bridge = Path(directory) / "firefox"
        command = shlex.join([sys.executable, "-m", "tests.playground.firefox.bridge", str(path)])
        bridge.write_text(f'#!/bin/sh\ncd {shlex.quote(str(_ROOT))} && exec {command} "$@"\n')
        bridge.chmod(0o755)
        browser = playwright.firefox.launch(
            channel="moz-firefox",
            executable_path=bridge,
            firefox_user_prefs=_PREFERENCES
            | {"layout.css.prefers-color-scheme.content-override": _COLOURS[colours]},
        )
        yield browser
        browser.close()
