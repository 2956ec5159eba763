"""Holds the imports, inside functions too, against the table in docs/architecture.md."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ouzel"
EVERYONE_MAY = {"errors", "observability"}


def allowed_imports() -> dict[str, set[str]]:
    """The rows of the table under "Imports point down": package -> what it may import; "everything" is `*`."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([\w./]+)` \| (.+?) \|$", text.split("### Imports point down")[1].split("\n## ")[0], re.M)
    return {package: set(re.findall(r"`([\w./*]+)`", allowed)) for package, allowed in rows}


def part_of(module: str) -> str:
    """`ouzel.backends.openvino.graph` -> `backends/openvino`; else the first name: `ouzel.engine.core` -> `engine`."""
    names = module.split(".")[1:]
    if names[:1] == ["backends"] and len(names) > 1:
        return "/".join(names[:2])
    return names[0] if names else ""


def imported_modules(path: Path) -> set[str]:
    """Every module of ours that the file imports, by full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("ouzel.") and is_module(name)}


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def source_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py")


def module_name(path: Path) -> str:
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    table = allowed_imports()
    part = part_of(module_name(path))
    if not part:
        return  # the package's own __init__: a version
    assert part in table, f"docs/architecture.md has no row for {part}"
    allowed = table[part] | EVERYONE_MAY
    for module in imported_modules(path):
        target = part_of(module)
        permitted = (
            "*" in allowed
            or target in {part, *allowed}
            or module.removeprefix("ouzel.").replace(".", "/") in {name.replace(".", "/") for name in allowed}
        )
        assert permitted, f"{path.relative_to(PACKAGE)} imports {module}; {part} may import {sorted(allowed)}"


def test_the_tree_in_the_document_is_the_tree() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text().split("## The tree")[1].split("```")[1]
    described = set(re.findall(r"^[├└]── ([\w.]+)", tree, re.M))
    present = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("__") and path.name != "py.typed"}
    assert described == present


def test_no_import_cycles_between_parts() -> None:
    edges: dict[str, set[str]] = {}
    for path in source_files():
        part = part_of(module_name(path))
        edges.setdefault(part, set()).update(part_of(module) for module in imported_modules(path))

    def reaches(start: str) -> set[str]:
        seen: set[str] = set()
        stack = [each for each in edges.get(start, set()) if each != start]
        while stack:
            part = stack.pop()
            if part not in seen:
                seen.add(part)
                stack += [each for each in edges.get(part, set()) if each != part]
        return seen

    assert [part for part in edges if part in reaches(part)] == []


def test_nobody_prints() -> None:
    for path in source_files():
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert not any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls), path


def test_the_api_loads_no_library_that_it_may_not_need() -> None:
    """SQLAlchemy is for a server with a store, the other two are for the engine's process."""
    script = "import sys, ouzel.api.app; print(*{'llguidance', 'openvino', 'sqlalchemy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_http_process_loads_no_grammar_engine() -> None:
    script = "import sys, ouzel.cli.serve, ouzel.cli.front; sys.exit('llguidance' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
