"""Long work shows its progress: at a terminal in one line, below the lines of the log."""

import signal
import sys
import threading
from pathlib import Path

import pytest

from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.observability.progress import Progress, advance_stage, listen_to_progress, stage
from ouzel.observability.progress_bar import amount, format_line
from tests.backends import GOLDEN
from tests.cli.test_pull import environment
from tests.model_store.hub import serving_hub
from tests.terminal import at_terminal

PROGRAM = """
import logging, sys, time
from ouzel.observability import configure_logging
from ouzel.observability.progress import stage
from ouzel.observability.progress_bar import progress_bar
configure_logging("info")
log = logging.getLogger("ouzel.test")
with progress_bar(), stage("reading", 1000) as reading:
    time.sleep(0.2)
    reading.advance(500)
    sys.stdin.readline()
    log.info("a line of the log")
    sys.stdin.readline()
sys.stdout.write("done\\n")
"""


def test_a_stage_tells_its_bytes_to_who_listens() -> None:
    told: list[Progress] = []
    with listen_to_progress(told.append), stage("reading", 100, done_bytes=20):
        advance_stage(30)
        advance_stage(7)
    assert told == [
        Progress("reading", 20, 100),
        Progress("reading", 57, 100),
    ]  # others a tenth of a second apart
    with stage("reading", 100):
        advance_stage(30)
    assert len(told) == 2


def test_a_line_says_how_much_how_fast_and_how_long() -> None:
    half = Progress("fetching", 2_000_000_000, 4_000_000_000)
    assert format_line(half, 0, 0.5) == "fetching  [############............]  50%  2 GB of 4 GB"
    assert format_line(half, 1_000_000_000, 10.0).endswith("2 GB of 4 GB  100 MB/s  0:20 left")
    assert format_line(half, 1_000_000, 10.0).endswith("100 kB/s  5:33:20 left")
    assert format_line(Progress("compiling"), 0, 75.0) == "compiling ... 1:15"


def test_amounts_have_three_digits() -> None:
    sizes = (0, 999, 1000, 1_234_567, 999_700_000, 45_600_000_000, 1_234_000_000_000)
    assert [*map(amount, sizes)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "1.23 MB",
        "1000 MB",
        "45.6 GB",
        "1234 GB",
    ]


def test_lines_of_the_log_stand_above_the_bar_which_is_gone_at_the_end() -> None:
    with at_terminal([sys.executable, "-c", PROGRAM]) as terminal:
        terminal.read_until(
            lambda lines: (
                lines[-1:] == ["reading  [############............]  50%  500 bytes of 1 kB"]
            )
        )
        terminal.type("\n")
        terminal.read_until(lambda lines: len(lines) > 1 and lines[-1].startswith("reading  [####"))
        logged = [line for line in terminal.lines if "a line of the log" in line]
        assert [line.endswith("INFO ouzel.test [-] a line of the log") for line in logged] == [True]
        terminal.type("\n")
        assert terminal.read_to_the_end() == 0
        assert terminal.lines[-1] == "done"
        assert not any("reading" in line for line in terminal.lines)


def test_the_line_is_cut_where_the_terminal_is_narrow() -> None:
    with at_terminal([sys.executable, "-c", PROGRAM], columns=30) as terminal:
        terminal.read_until(lambda lines: lines == ["reading  [############......."])


def test_a_download_is_shown_and_an_interrupted_one_leaves_the_line_empty(tmp_path: Path) -> None:
    directory = tmp_path / "repository"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(bytes(20_000_000))
    with serving_hub(directory) as hub:
        hub.cut_after_bytes, hub.num_cuts, hub.holds_back = 9 * 2**20, 1000, threading.Event()
        command = [sys.executable, "-m", "ouzel", "pull", "owner/model"]
        with at_terminal(command, environment(tmp_path, hub.url)) as terminal:
            terminal.read_until(lambda lines: "9.44 MB of 20 MB" in "".join(lines[-1:]))
            assert terminal.lines[-1].startswith("fetching owner/model  [###")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.read_to_the_end() == 130
            assert terminal.lines == []
        hub.holds_back.set()


@pytest.mark.parametrize("in_thread", [True, False], ids=["thread", "process"])
async def test_an_engine_tells_what_it_does_until_it_is_ready(
    in_thread: bool, tmp_path: Path
) -> None:
    model = {"model": str(GOLDEN / "qwen3"), "cache_dir": str(tmp_path)}
    options: dict[str, object] = {"model": model, "engine": {"kv_cache_gib": 0.01}}
    client = EngineClient(
        EngineSpec(factory="ouzel.serve.engine_factories:openvino_engine", options=options),
        in_thread=in_thread,
    )
    told: list[Progress] = []
    with listen_to_progress(told.append):
        await client.start()
    await client.close()
    stages = list(dict.fromkeys(progress.stage for progress in told))
    assert stages == [
        "compressing the weights",
        "checking the weights",
        next(stage for stage in stages if stage.startswith("compiling the model in ")),
        "loading and checking the model",
    ]
