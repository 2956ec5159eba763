"""Compares all imports, including imports in functions, with the table in docs/architecture.md."""

import ast
import functools
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ouzel"
EVERYONE_MAY = {"errors", "observability"}


def allowed_imports() -> dict[str, set[str]]:
    """Returns the table under "Imports point down": a part, and the parts that it may import."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(
        r"^\| `([\w./]+)` \| (.+?) \|$",
        text.split("### Imports point down")[1].split("\n## ")[0],
        re.M,
    )
    return {part: set(re.findall(r"`([\w./*]+)`", allowed)) for part, allowed in rows}


TABLE = allowed_imports()


def find_part(module: str) -> str:
    """Returns the longest row that contains a module.

    For example, `grammar/schema` contains `ouzel.grammar.schema.reader`.
    """
    names = module.split(".")[1:]
    heads = ["/".join(names[:count]) for count in range(len(names), 0, -1)]
    return next((head for head in heads if head in TABLE), names[0] if names else "")


def is_allowed(module: str, part: str) -> bool:
    """Tells whether a row allows the import of a module.

    The row may name the module's part, all of the part around it (`grammar/*`), or the module
    itself.
    """
    target = find_part(module)
    ways_to_name_it = {"*", target, target.partition("/")[0] + "/*", module.removeprefix("ouzel.")}
    return bool(ways_to_name_it & (TABLE[part] | EVERYONE_MAY | {part}))


def sub_packages(part: str) -> set[str]:
    return {f"{part}/{path.parent.name}" for path in (PACKAGE / part).glob("*/__init__.py")}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imported_modules(path: Path) -> frozenset[str]:
    """Returns the full name of every module of this project that the file imports."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(name for name in found if name.startswith("ouzel.") and is_module(name))


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def source_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py")


def module_name(path: Path) -> str:
    names = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def test_imports_point_down() -> None:
    """Checks all files in one test, because a test for each would be slow."""
    parts = {path: find_part(module_name(path)) for path in source_files()}
    assert {part for part in parts.values() if part} - TABLE.keys() == set(), "parts without a row"
    offences = [
        f"{path.relative_to(PACKAGE)} imports {module}; {part} may import {sorted(TABLE[part])}"
        for path, part in parts.items()
        if part  # the package's own __init__ has only a version
        for module in sorted(imported_modules(path))
        if not is_allowed(module, part)
    ]
    assert offences == []


def test_each_row_names_a_folder_or_a_file() -> None:
    assert {row for row in TABLE if not is_module("ouzel." + row.replace("/", "."))} == set()


def read_layers(part: str) -> list[list[str]]:
    """Returns the files of a part from the bottom up, as the document lists them."""
    lines = (ROOT / "docs" / "architecture.md").read_text().split(f"\n{part}:\n")[1].splitlines()
    return [line.split() for line in itertools.takewhile(lambda line: line.startswith("  "), lines)]


@pytest.mark.parametrize("part", ["wire", "responses"])
def test_files_of_a_layered_part_import_only_those_below(part: str) -> None:
    layers = read_layers(part)
    level = {name: number for number, names in enumerate(layers) for name in names}
    folder = PACKAGE / part
    files = {
        str(path.relative_to(folder).with_suffix("")): path
        for path in folder.rglob("*.py")
        if path.stem != "__init__"
    }
    assert level.keys() == files.keys()
    for name, path in files.items():
        own = {
            module.removeprefix(f"ouzel.{part}.").replace(".", "/")
            for module in imported_modules(path)
            if module.startswith(f"ouzel.{part}.")
        }
        own -= {str(each.relative_to(folder)) for each in folder.iterdir() if each.is_dir()}
        assert all(level[other] < level[name] for other in own), f"{part}/{name}.py imports {own}"


def test_the_tree_in_the_document_is_the_tree() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text().split("## The tree")[1].split("```")[1]
    described: dict[str, set[str]] = {}
    for indent, name in re.findall(r"^(│   |    )?[├└]── ([\w.]+)", tree, re.M):
        if indent:
            part = list(described)[-1]
            described[part].add(f"{part}/{name}")
        else:
            described[name] = set()
    present = {
        path.name
        for path in PACKAGE.iterdir()
        if not path.name.startswith("__") and path.name != "py.typed"
    }
    assert described.keys() == present
    for part, inner in described.items():
        assert not inner or sub_packages(part) <= inner
        assert [path for path in inner if not (PACKAGE / path).exists()] == []


def test_no_import_cycles_between_parts() -> None:
    edges: dict[str, set[str]] = {}
    for path in source_files():
        part = find_part(module_name(path))
        edges.setdefault(part, set()).update(find_part(module) for module in imported_modules(path))

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


def test_no_source_file_prints() -> None:
    for path in source_files():
        calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
        assert not any(
            isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls
        ), path


def test_only_one_file_imports_openvino() -> None:
    """This file turns telemetry off before the import, so all others must import through it."""
    files = [*source_files(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    statement = re.compile(r"^\s*(?:import|from) openvino\b", re.M)
    assert [
        path.relative_to(PACKAGE).as_posix() for path in files if statement.search(path.read_text())
    ] == ["backends/openvino/library.py"]


def test_the_api_loads_no_optional_library() -> None:
    """SQLAlchemy serves a store only; llguidance and openvino serve the engine's process only."""
    script = (
        "import sys, ouzel.api.app; print(*{'llguidance', 'openvino', "
        "'sqlalchemy'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_server_without_a_voice_model_compiles_no_patterns_of_english() -> None:
    script = (
        "import sys, ouzel.serve.http_frontend; "
        "print(*(name for name in sys.modules if name.startswith('ouzel.phonemes')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_the_engine_is_started_before_numpy_is_imported() -> None:
    """Importing numpy takes a tenth of a second, and would delay the engine's start."""
    script = "import sys, ouzel.serve.command; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_converter_of_models_is_imported_only_when_needed() -> None:
    script = (
        "import sys, ouzel.backends.openvino.library; "
        "assert 'openvino.tools.ovc' not in sys.modules; "
        "from openvino.tools.ovc import convert_model"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_http_process_loads_no_grammar_engine() -> None:
    script = (
        "import sys, ouzel.serve.serve, ouzel.serve.http_frontend; "
        "sys.exit('llguidance' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
