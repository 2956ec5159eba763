"""The records of requests are prepared before threads decode them.

msgspec describes a class when it is first decoded, and shows the unfinished description to other
threads, which then crash the process.
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any  # a private function of msgspec

import msgspec
from msgspec import _utils

from ouzel.serve.in_process_app import in_process_app, read_own_model

REQUESTS = {"ChatCompletionRequest", "ResponsesRequest", "MessagesRequest"}


def test_an_open_server_describes_no_record_of_a_request_anew(tmp_path: Path) -> None:
    """The server is in a process of its own, where no other test has decoded a record."""
    program = [sys.executable, "-m", __name__, str(tmp_path)]
    seen = subprocess.run(program, check=True, capture_output=True, text=True).stdout.split()
    assert seen == ["NewRecord"]


async def list_described_records(cache_dir: str) -> list[str]:
    """Decodes each record while the server is open; returns the names of the classes that msgspec
    describes then.
    """
    arguments = ["--cache-dir", cache_dir, "--kv-cache-gib", "0.05", "--no-engine-process"]
    options, model = read_own_model(arguments, command="chat")
    async with in_process_app(options, model):
        records = find_records(msgspec.Struct)
        assert {record.__name__ for record in records} >= REQUESTS
        described = note_descriptions()
        for record in [*records, msgspec.defstruct("NewRecord", [("value", int)])]:
            try:
                msgspec.json.Decoder(record)
            except TypeError:  # it is only encoded
                described.discard(record)
    return sorted(record.__name__ for record in described)


def find_records(record: type) -> list[type]:
    subclasses: list[type] = record.__subclasses__()
    return [*subclasses, *(found for each in subclasses for found in find_records(each))]


def note_descriptions() -> set[type]:
    """Returns a set to which msgspec adds each class that it describes."""
    described: set[type] = set()
    name = "_get_class_mro_and_typevar_mappings"  # the first step of a description
    original: Callable[[Any], Any] = getattr(_utils, name)

    def noting(record: Any) -> Any:
        described.add(record)
        return original(record)

    setattr(_utils, name, noting)
    return described


if __name__ == "__main__":
    sys.stdout.write(" ".join(asyncio.run(list_described_records(sys.argv[1]))))
