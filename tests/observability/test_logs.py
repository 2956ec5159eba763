"""With JSON logs, each line is an object, whichever library or thread logs it."""

import json
import subprocess
import sys
from datetime import datetime, timedelta

TALKATIVE = """
import logging, threading, warnings
from ouzel.observability import configure_logging, facts, request_id_in_scope

configure_logging("info", "json")
figures = facts(status=200, model="m", ttft_s=None)
logging.getLogger("ouzel.part").info("%d lines\\nor \\udce9 more", 2, extra=figures)
logging.getLogger("ouzel.part").debug("not this")
request_id_in_scope.set("abc")
logging.getLogger("uvicorn.error").info("nor this")
logging.getLogger("uvicorn.error").warning("of a library")
warnings.warn("deprecated", stacklevel=1)
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("ouzel.part").exception("caught")
thread = threading.Thread(target=lambda: {}["in a thread"])
thread.start()
thread.join()
raise RuntimeError("to the end")
"""


def test_whoever_speaks_each_line_is_an_object() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TALKATIVE], capture_output=True, text=True, check=False
    )

    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(line["level"], line["logger"]) for line in lines] == [
        ("INFO", "ouzel.part"),
        ("WARNING", "uvicorn.error"),
        ("WARNING", "py.warnings"),
        ("ERROR", "ouzel.part"),
        ("CRITICAL", "ouzel"),
        ("CRITICAL", "ouzel"),
    ]
    first, of_library, warning, caught, in_thread, uncaught = lines
    assert first.keys() == {"time", "level", "logger", "message", "status", "model"}
    assert (first["message"], first["status"]) == ("2 lines\nor \udce9 more", 200)
    assert datetime.fromisoformat(first["time"]).utcoffset() == timedelta(0)
    assert len(first["time"]) == len("2026-01-01T00:00:00.000Z")
    assert (of_library["message"], of_library["request_id"]) == ("of a library", "abc")
    assert "UserWarning: deprecated" in warning["message"]
    assert caught["exception"].endswith("ZeroDivisionError: division by zero")
    assert in_thread["exception"].endswith("KeyError: 'in a thread'")
    assert uncaught["exception"].endswith("RuntimeError: to the end")
    assert ended.returncode == 1
