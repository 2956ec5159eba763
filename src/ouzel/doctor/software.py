"""Reads versions, installed extras, disks and the state of a port."""

import os
import platform
import re
import shutil
import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path

import ouzel

_REQUIREMENT = re.compile(r"""(?P<name>[A-Za-z0-9._-]+).*extra == ['"](?P<extra>\w+)['"]""")


@dataclass(frozen=True, slots=True)
class Disk:
    what: str
    path: Path
    free_bytes: int
    is_writable: bool


@dataclass(frozen=True, slots=True)
class Software:
    system: str
    python: str
    ouzel: str
    openvino: str
    kernels: str  # instructions of ouzel-kernels, or the reason why there are none
    extras: dict[str, bool]  # whether all packages of each extra are installed


def read_software() -> Software:
    return Software(
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        ouzel=ouzel.__version__,
        openvino=version("openvino"),
        kernels=read_kernels(),
        extras=extras(),
    )


def read_kernels() -> str:
    """Returns the instructions of Ouzel's own kernels, or the reason why there are none."""
    try:
        # The import takes half a second, and may itself fail.
        from ouzel.backends.openvino.kernels.library import describe_kernels  # noqa: PLC0415
    except ImportError as error:
        return f"none: {error}"
    return describe_kernels()


def extras() -> dict[str, bool]:
    found: dict[str, bool] = {}
    for requirement in requires("ouzel") or ():
        if match := _REQUIREMENT.match(requirement):
            found[match["extra"]] = found.get(match["extra"], True) and _is_installed(match["name"])
    return dict(sorted(found.items()))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def read_disk(what: str, path: Path) -> Disk:
    """Reads the free space for a path; if it does not exist, of the nearest existing directory."""
    nearest = path
    for nearest in (path, *path.absolute().parents):
        if os.path.exists(nearest):  # False also without the right to look
            break
    is_writable = os.access(nearest, os.W_OK | os.X_OK)
    return Disk(what, path, shutil.disk_usage(nearest).free, is_writable)


def is_port_free(host: str, port: int) -> bool:
    """Tells whether a server could listen at the address; False for an unknown host name."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError:
        return False
    return True
