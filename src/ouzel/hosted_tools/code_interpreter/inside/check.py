"""Tests the walls of a sandbox from inside; each server runs it at its start."""

import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any  # Any: JSON, and addresses of two families

_PR_GET_NO_NEW_PRIVS = 39


def fails(act: Callable[[], object]) -> bool:
    try:
        act()
    except OSError:
        return True
    return False


def connect(family: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(3)
        client.connect(address)


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def write(path: str) -> None:
    with open(path, "w"):
        pass


def print_facts(text: str) -> None:
    """Writes facts as JSON; `text` describes things outside, which must be out of reach."""
    given = json.loads(text)
    lines = [line.partition(":") for line in read("/proc/self/status").splitlines()]
    status = {name: value.strip() for name, _, value in lines}
    pids = [name for name in os.listdir("/proc") if name.isdecimal()]
    names = ["CapPrm", "CapEff", "CapBnd", *(["CapAmb"] if "CapAmb" in status else [])]
    rights = [int(status[name], 16) for name in names]
    facts = {
        "no_port": fails(lambda: connect(socket.AF_INET, ("127.0.0.1", given["port"]))),
        "no_socket": fails(lambda: connect(socket.AF_UNIX, "\0" + given["name"])),
        "no_file": fails(lambda: os.stat(given["file"])),
        "no_process": len(pids) < 10,
        "no_interface": read("/proc/net/dev").count(":") <= 1,
        "no_capability": not any(rights),
        "no_new_rights": ctypes.CDLL(None).prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
        "system_call_filter": status["Seccomp"] == "2",
        "own_kernel": os.uname().version != given["kernel"],
        "read_only": all(fails(partial(write, path)) for path in given["closed"]),
        "writable": not fails(lambda: write("/mnt/data/x")),
        "empty_environment": set(os.environ) <= set(given["variables"]),
    }
    sys.stdout.write(json.dumps(facts))
