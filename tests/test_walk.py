"""`tools/house/walk.py` counts how often a reader of `ouzel serve` changes files."""

import re
import subprocess
import sys

from tools.house.hops import Call, Function
from tools.house.rooms import REPOSITORY
from tools.house.walk import read_stays

MAIN, READ = Function("cli/app.py", "main"), Function("options/read.py", "read_options")
CONVERT, SERVE = Function("options/read.py", "convert"), Function("serve/serve.py", "serve")


def test_a_stay_ends_at_a_call_into_another_file() -> None:
    calls = [Call(MAIN, READ), Call(READ, CONVERT), Call(MAIN, SERVE)]
    assert [str(stay) for stay in read_stays(calls)] == [
        "-> cli/app.py: main",
        "-> options/read.py: read_options, convert",
        "<- cli/app.py: main",
        "-> serve/serve.py: serve",
    ]


def test_the_start_of_the_command_is_walked() -> None:
    script = [sys.executable, "-m", "tools.house.walk"]
    output = subprocess.run(script, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    heading, first, *_ = output.stdout.splitlines()
    counts = re.fullmatch(r"(\d+) stays, (\d+) files, (\d+) returns", heading)
    assert counts is not None
    num_stays, num_files, num_returns = map(int, counts.groups())
    assert num_stays == num_files + num_returns
    assert num_files > 5
    assert ": main" in first
