"""Reads the last stage of `deploy/Containerfile`, as a container tool would run it."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PATH = ROOT / "deploy" / "Containerfile"


@dataclass(frozen=True, slots=True)
class Image:
    """The content of the image, and its command."""

    prefix: str  # where build.sh installs to
    environment: dict[str, str]
    user_id: int
    group_id: int
    volumes: tuple[str, ...]
    command: tuple[str, ...]  # the entry point and its arguments
    health_check: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)


def read_image(text: str) -> Image:
    """Reads the instructions that this repository's file uses; another instruction is an error."""
    lines = _instructions(text)
    [prefix] = [
        words[1]
        for name, rest in lines
        if name == "RUN" and (words := rest.split())[0].endswith("build.sh")
    ]
    last_stage = lines[max(at for at, (name, _) in enumerate(lines) if name == "FROM") :]
    by_name: dict[str, list[str]] = {}
    for name, rest in last_stage:
        by_name.setdefault(name, []).append(rest)
    user, group = map(int, by_name["USER"][-1].split(":"))
    return Image(
        prefix=prefix,
        environment=_pairs(by_name["ENV"]),
        user_id=user,
        group_id=group,
        volumes=tuple(json.loads(by_name["VOLUME"][-1])),
        command=(*json.loads(by_name["ENTRYPOINT"][-1]), *json.loads(by_name["CMD"][-1])),
        health_check=tuple(json.loads(by_name["HEALTHCHECK"][-1].partition(" CMD ")[2])),
        labels=_pairs(by_name["LABEL"]),
    )


def _instructions(text: str) -> list[tuple[str, str]]:
    """Yields name and arguments of each instruction; a backslash continues a line."""
    uncommented = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", uncommented)
    return [
        (name, rest)
        for line in joined.splitlines()
        if line
        for name, _, rest in [line.partition(" ")]
    ]


def _pairs(instructions: Sequence[str]) -> dict[str, str]:
    words = [word for instruction in instructions for word in shlex.split(instruction)]
    return {name: value for name, _, value in (word.partition("=") for word in words)}
