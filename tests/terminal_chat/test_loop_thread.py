"""Work of the event loop's thread ends before the main thread goes on."""

import subprocess
import sys


def test_a_context_that_is_interrupted_while_it_opens_is_left_first() -> None:
    command = [sys.executable, "-m", "tests.terminal_chat.interrupted"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (
        0,
        ["left", "interrupted"],
        "",
    )
