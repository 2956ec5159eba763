"""Reads every hostile file in this process, whose memory can be measured.

    python -m tests.prompts.media.hostile_outcomes

It writes one line of JSON per file: the outcome, the peak of memory and the processor time.
"""

import resource
import sys
import time
import warnings
from pathlib import Path

import msgspec
from PIL import Image

from ouzel.errors import InvalidRequest
from tests.prompts.media.files import decoded, plain, read, saved
from tests.prompts.media.hostile_files import GROUPS

MAX_ADDRESS_SPACE = 4 * 2**30


class Outcome(msgspec.Struct, frozen=True):
    group: str
    name: str
    # "picture", "refused by its header", "refused by its pixels" or the repr of another exception
    result: str
    message: str
    peak_bytes: int  # how far the process's memory rose
    processor_s: float


def outcome(group: str, name: str, data: bytes) -> Outcome:
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    memory_before, began = memory("VmRSS"), time.process_time()
    result, message = "refused by its header", ""
    try:
        picture = read(data)
        result = "refused by its pixels"
        image = decoded(picture)
        assert (image.mode, image.size) == ("RGB", (picture.width, picture.height))
        result = "picture"
    except InvalidRequest as error:
        message = str(error)
    except Exception as error:  # the test fails for such an outcome
        result = repr(error)
    return Outcome(
        group, name, result, message, memory("VmHWM") - memory_before, time.process_time() - began
    )


def memory(name: str) -> int:
    """Returns a figure of this process in bytes: its memory (VmRSS) or its peak (VmHWM)."""
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)
    ]
    return int(line.split()[1]) * 1024


def main() -> None:
    warnings.simplefilter("error")
    read(plain())  # installs the server's filters of warnings
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    outcomes = [outcome("large", "BMP", saved(Image.new("RGB", (1000, 300)), "BMP"))]
    outcomes += [outcome(group.__name__, name, data) for group in GROUPS for name, data in group()]
    sys.stdout.buffer.write(msgspec.json.Encoder().encode_lines(outcomes))


if __name__ == "__main__":
    main()
