"""Opens the containers for code of models, and first checks that the sandbox holds."""

import logging
import os
from pathlib import Path

from ouzel.config import HostedToolsConfig
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.code_interpreter.records import (
    SandboxLimits,
    SandboxPlan,
    SandboxUnavailable,
)
from ouzel.hosted_tools.code_interpreter.self_check import check_sandbox
from ouzel.options.invalid_option import InvalidOption

logger = logging.getLogger(__name__)

_MAX_LINKS = 16
_SYSTEM = ("/usr/", "/bin/")  # programs below these are inside in any case


async def open_containers(config: HostedToolsConfig) -> Containers | None:
    """Returns None if the sandbox is off. Raises InvalidOption if no sandbox can be made."""
    if config.sandbox == "none":
        return None
    plan = _make_plan(config)
    try:
        containers = Containers(
            plan,
            max_containers=config.sandbox_max_containers,
            max_per_key=config.sandbox_max_per_key,
            idle_s=60 * config.sandbox_idle_minutes,
        )
        held = await check_sandbox(plan)
    except SandboxUnavailable as error:
        raise InvalidOption(f"sandbox {config.sandbox}: {error}") from None
    logger.info(
        "code of models runs in sandboxes (%s); limits of processes: %s; memory of a container: %s",
        config.sandbox,
        ", ".join(held),
        "measured" if plan.cgroup is None else f"held by the cgroup {plan.cgroup}",
    )
    return containers


def _make_plan(config: HostedToolsConfig) -> SandboxPlan:
    root = Path(config.sandbox_root) if config.sandbox_root else None
    if root is not None and not root.is_dir():
        raise InvalidOption(f"sandbox_root must be a directory, given {config.sandbox_root}")
    limits = SandboxLimits(
        memory_bytes=config.sandbox_memory_mib * 2**20,
        file_bytes=config.sandbox_files_mib * 2**20,
        max_processes=config.sandbox_max_processes,
        cpu_s=config.sandbox_cpu_s,
        call_timeout_s=config.sandbox_timeout_s,
        output_bytes=config.sandbox_output_kib * 2**10,
    )
    shown = () if root is not None else list_python_directories(config.sandbox_python)
    cgroup = Path(config.sandbox_cgroup) if config.sandbox_cgroup else None
    assert config.sandbox != "none"
    return SandboxPlan(root, config.sandbox_python, shown, limits, cgroup, config.sandbox)


def list_python_directories(python: str) -> tuple[Path, ...]:
    """Returns the directories of the host that an interpreter outside of /usr needs."""
    if not python:
        return ()
    if not os.path.isabs(python) or not os.access(python, os.X_OK):
        raise InvalidOption(
            f"sandbox_python must be the path of a program from the root, given {python}"
        )
    places: set[Path] = set()
    current = Path(python)
    for _ in range(_MAX_LINKS):
        places.add(current.parent.parent)
        if not current.is_symlink():
            break
        current = Path(os.path.normpath(current.parent / os.readlink(current)))
    places.add(current.resolve().parent.parent)
    return tuple(sorted(filter(_is_python_directory, places)))


def _is_python_directory(place: Path) -> bool:
    """Tells whether a directory is an environment or an installation of Python, and only that.

    The root of the file system and the home of a user are not, though they may look so.
    """
    if place in (Path("/"), Path.home()) or f"{place}/".startswith(_SYSTEM):
        return False
    return (place / "pyvenv.cfg").is_file() or any(place.glob("lib/python3*/os.py"))
