"""Measures how the package is laid out: hints for people, beside the limits of `measure.py`."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools.house.rooms import REPOSITORY, python_files
from tools.house.texts import FunctionNode

WARNED_FILE_LINES = 300
NEAR_LIMIT = 15  # lines
SHORT_FILE_LINES = 30
FULL_FOLDER_FILES = 30
# Folders in which a file is a model family, a parser of a family, or a part of a graph.
FAMILY_FOLDERS = {"models", "vision", "encoders", "families", "graph"}

Graph = Mapping[str, set[str]]


# Folders and files


def files_by_folder(paths: Iterable[Path]) -> Counter[str]:
    """Counts the files directly in each folder, without `__init__.py` and folders of families."""
    return Counter(
        path.parent.as_posix()
        for path in paths
        if path.name != "__init__.py" and path.parent.name not in FAMILY_FOLDERS
    )


def lines_by_top_folder(root: Path = REPOSITORY) -> Counter[str]:
    """Counts the lines of all Python files by the first folder of their path."""
    lines = Counter[str]()
    for path in python_files(root):
        with (root / path).open("rb") as file:
            lines[path.parts[0]] += sum(1 for _ in file)
    return lines


def is_near(num_lines: int, limit: int) -> bool:
    return limit - NEAR_LIMIT <= num_lines <= limit


# Imports


def all_imported(tree: ast.AST, modules: set[str]) -> set[str]:
    """Returns the imported modules, with imports inside functions and under `TYPE_CHECKING`."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                found.update(alias.name for alias in names if alias.name in modules)
            case ast.ImportFrom(str(module), names) if module in modules:
                full_names = [f"{module}.{alias.name}" for alias in names]
                found.update(name if name in modules else module for name in full_names)
    return found


def find_modules_in_cycles(graph: Graph) -> list[str]:
    """Returns the modules that import themselves through others."""
    core = {module: imported - {module} for module, imported in graph.items()}
    while True:
        imported_in_core = set().union(*core.values())
        kept = {
            module: imported & core.keys()
            for module, imported in core.items()
            if imported & core.keys() and module in imported_in_core
        }
        if len(kept) == len(core):
            return sorted(module for module in core if module in _find_reachable(core, module))
        core = kept


def _find_reachable(graph: Graph, start: str) -> set[str]:
    seen = set[str]()
    waiting = [*graph[start]]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(graph.get(module, ()))
    return seen


def importers_of_cli(trees: Mapping[Path, ast.Module], package: str = "ouzel.cli") -> list[str]:
    """Returns the rooms that import the package: parts of `ouzel`, `tools`, and `benchmarks`."""
    rooms = set[str]()
    for path, tree in trees.items():
        room = path.parts[2] if path.parts[0] == "src" else path.parts[0]
        if room != package.rpartition(".")[2] and any(
            name == package or name.startswith(package + ".") for name in _imported_names(tree)
        ):
            rooms.add(room.removesuffix(".py"))
    return sorted(rooms - {"__main__", "tests"})


def _imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(str(module), names):
                yield from (f"{module}.{alias.name}" for alias in names)


# Rules that have several places

_READS = re.compile(r"read|load|decode|open")
_CHECKS_MODEL = re.compile(r"check_(with|without|vllm)_model$|open_models$")


def readers_of_config(trees: Mapping[Path, ast.Module]) -> list[str]:
    """Returns the functions that open a checkpoint's `config.json`.

    Such a function passes `directory / "config.json"`, or a variable with this value, as the first
    argument of a call that reads, loads, decodes or opens, or calls such a method of the path.
    """
    found = []
    for path, function in _functions(trees):
        variables = _config_variables(function)
        if any(_opens_config(node, variables) for node in ast.walk(function)):
            found.append(f"{path} {function.name}")
    return found


def _functions(trees: Mapping[Path, ast.Module]) -> Iterator[tuple[Path, FunctionNode]]:
    """Yields the functions of the files that name `config.json` at all."""
    for path, tree in trees.items():
        nodes = [*ast.walk(tree)]
        if not any(isinstance(node, ast.BinOp) and _is_config_path(node, set()) for node in nodes):
            continue
        for node in nodes:
            if isinstance(node, FunctionNode):
                yield path, node


def _config_variables(function: FunctionNode) -> set[str]:
    """Returns the variables whose value is the path of a `config.json`."""
    found = set[str]()
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(name)], value) if _is_config_path(value, set()):
                found.add(name)
    return found


def _opens_config(node: ast.AST, variables: set[str]) -> bool:
    match node:
        case ast.Call(ast.Attribute(value, name)) if _is_config_path(value, variables):
            return _READS.search(name) is not None
        case ast.Call(ast.Attribute(_, name) | ast.Name(name), [first, *_]):
            return _READS.search(name) is not None and _is_config_path(first, variables)
    return False


def _is_config_path(node: ast.AST, variables: set[str]) -> bool:
    match node:
        case ast.BinOp(ast.Name() | ast.Attribute(), ast.Div(), ast.Constant("config.json")):
            return True
        case ast.Name(name):
            return name in variables
    return False


def files_that_check_models(trees: Mapping[Path, ast.Module]) -> list[str]:
    """Returns the files that call `check_with_model`, `open_models` or the like."""
    return [
        str(path)
        for path, tree in trees.items()
        if any(_CHECKS_MODEL.match(name) for name in _find_called_names(tree))
    ]


def _find_called_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(_, name)):
                yield name


# Copies

COPY_LINES = 8


def copies(texts: Mapping[Path, str]) -> list[str]:
    """Returns a line for each stretch of code lines that stands in two places.

    Blank lines, comments and imports do not count, nor do lines without a word, such as brackets.
    """
    first_places: dict[tuple[str, ...], str] = {}
    found: list[str] = []
    for path, text in texts.items():
        lines = [*_code_lines(text)]
        is_inside_copy = False
        for start in range(len(lines) - COPY_LINES + 1):
            window = tuple(line for _, line in lines[start : start + COPY_LINES])
            place = f"{path}:{lines[start][0]}"
            first = first_places.setdefault(window, place)
            if first != place and not is_inside_copy:
                found.append(f"{place} repeats {first}")
            is_inside_copy = first != place
    return found


def _code_lines(text: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    excluded = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.strip()
        if number not in excluded and not code.startswith("#") and re.search(r"\w", code):
            yield number, code
