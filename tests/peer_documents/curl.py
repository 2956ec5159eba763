"""Parses curl command lines of a text as requests."""

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class CurlRequest:
    method: str
    url: str
    headers: dict[str, str]
    body: str


def find_curl_lines(text: str) -> Iterator[str]:
    """Yields each command, from `curl` to the end of its last quotation."""
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("curl "):
            continue
        command = line
        while not _is_whole(command):
            command += "\n" + next(lines)
        yield command


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:  # an open quotation
        return False
    return not command.endswith("\\")


def parse_curl(command: str) -> CurlRequest:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("program", choices=["curl"])
    parser.add_argument("url")
    # POST is curl's default for a request with a body.
    parser.add_argument("-X", dest="method", default="POST")
    parser.add_argument("-H", action="append", dest="headers", default=[])
    parser.add_argument("-d", dest="body", required=True)
    read = parser.parse_args(shlex.split(command.replace("\\\n", " ")))
    return CurlRequest(
        read.method, read.url, dict(header.split(": ", 1) for header in read.headers), read.body
    )
