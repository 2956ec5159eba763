"""Measures the package by the limits of the house, and exits with 1 where one of them is broken.

    uv run python -m tools.house.measure [--fragments] [--hints]

`--hints` lists the files, rooms and functions behind the counts that have no limit. The tool reads
only the text of the files: it imports nothing of the package.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

from tools.house.fragments import is_fragment
from tools.house.layout import (
    FULL_FOLDER_FILES,
    SHORT_FILE_LINES,
    WARNED_FILE_LINES,
    all_imported,
    copies,
    files_by_folder,
    files_that_check_models,
    find_modules_in_cycles,
    importers_of_cli,
    is_near,
    lines_by_top_folder,
    readers_of_config,
)
from tools.house.rooms import REPOSITORY, python_files

ROOT = Path(__file__).parents[2] / "src"
PACKAGE = "ouzel"

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 90
MAX_COMPLEXITY = 15

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    place: str  # file:line name
    num_lines: int
    complexity: int


@dataclass(frozen=True, slots=True)
class Docstring:
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """Holds one file; `path` begins below `ROOT`."""

    module: str
    path: Path
    num_lines: int
    tree: ast.Module

    def functions(self) -> Iterator[Function]:
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode):
                place = f"{self.path}:{node.lineno} {node.name}"
                yield Function(
                    place,
                    (node.end_lineno or node.lineno) - node.lineno + 1,
                    measure_complexity(node),
                )

    def docstrings(self) -> Iterator[Docstring]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | FunctionNode) and (
                text := ast.get_docstring(node)
            ):
                yield Docstring(f"{self.path}:{node.body[0].lineno}", text)


def read_sources() -> list[Source]:
    return [_source(path) for path in sorted((ROOT / PACKAGE).rglob("*.py"))]


def _source(path: Path) -> Source:
    text, below = path.read_text(), path.relative_to(ROOT)
    parts = below.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(module, below, len(text.splitlines()), ast.parse(text))


# Imports


def import_cycle(sources: list[Source]) -> list[str]:
    """Returns the modules of one cycle, the first again at the end; [] where there is none.

    Imports inside functions and under `if TYPE_CHECKING` do not count: they run later, or never.
    """
    modules = {source.module for source in sources}
    graph = {
        source.module: set(_find_imports(source.tree, modules)) - {source.module}
        for source in sources
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]  # graphlib lists the imported module before its importer
    return []


def _find_imports(node: ast.AST, modules: set[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names):
                yield from (alias.name for alias in names if alias.name in modules)
            case ast.ImportFrom(str(module), names) if module in modules:
                full_names = [f"{module}.{alias.name}" for alias in names]
                yield from (name if name in modules else module for name in full_names)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case ast.If(ast.Name("TYPE_CHECKING"), _, otherwise):
                yield from _find_imports(ast.Module(otherwise, []), modules)
            case _:
                yield from _find_imports(child, modules)


# Complexity


def measure_complexity(function: FunctionNode) -> int:
    """Returns 1, and 1 for every decision, also inside expressions and nested functions.

    Unlike ruff's C901 it counts conditional expressions, comprehensions and each further operand of
    `and` and `or`, for a reader has to decide there too. The cases of a `match` are a table and do
    not count.
    """
    return 1 + sum(map(_num_decisions, ast.walk(function)))


def _num_decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return isinstance(node, _DECISIONS)


_DECISIONS = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.comprehension,
    ast.While,
    ast.ExceptHandler,
    ast.Assert,
)


# Limits


def broken_limits(sources: list[Source]) -> list[str]:
    """Returns one line for each place where the house is not as it shall be."""
    cycle = import_cycle(sources)
    broken = [f"import cycle: {' -> '.join(cycle)}"] if cycle else []
    for source in sources:
        if source.num_lines > MAX_FILE_LINES:
            broken.append(
                f"{source.path} has {source.num_lines} lines, the limit is {MAX_FILE_LINES}"
            )
        for function in source.functions():
            if function.num_lines > MAX_FUNCTION_LINES:
                broken.append(
                    f"{function.place} has {function.num_lines} lines, "
                    f"the limit is {MAX_FUNCTION_LINES}"
                )
            if function.complexity > MAX_COMPLEXITY:
                broken.append(
                    f"{function.place} has complexity {function.complexity}, "
                    f"the limit is {MAX_COMPLEXITY}"
                )
    return broken


# Hints


def hints(sources: list[Source]) -> dict[str, list[str]]:
    """Returns the places that deserve a look and break no limit, by the title of each hint."""
    modules = {source.module for source in sources}
    trees = {Path(ROOT.name) / source.path: source.tree for source in sources}
    texts = {path: (REPOSITORY / path).read_text() for path in trees}
    scripts = {
        path: ast.parse((REPOSITORY / path).read_text())
        for path in python_files()
        if path.parts[0] in ("tools", "benchmarks")
    }
    at_import = {
        source.module: {*_find_imports(source.tree, modules)} - {source.module}
        for source in sources
    }
    ever = {source.module: all_imported(source.tree, modules) for source in sources}
    sizes = {
        f"{source.path} {source.num_lines}": source.num_lines
        for source in sources
        if source.path.name != "__init__.py"
    }
    return {
        f"WARNING: files over {WARNED_FILE_LINES} lines": _where(sizes, _is_warned),
        f"files within 15 lines of {WARNED_FILE_LINES}": _where(
            sizes, lambda size: is_near(size, WARNED_FILE_LINES)
        ),
        f"files within 15 lines of {MAX_FILE_LINES}": _where(
            sizes, lambda size: is_near(size, MAX_FILE_LINES)
        ),
        f"files under {SHORT_FILE_LINES} lines": _where(
            sizes, lambda size: size < SHORT_FILE_LINES
        ),
        f"folders over {FULL_FOLDER_FILES} files, those of families apart": [
            f"{folder} {number}"
            for folder, number in files_by_folder(trees).most_common()
            if number > FULL_FOLDER_FILES
        ],
        "modules in cycles of imports": find_modules_in_cycles(at_import),
        "modules in cycles, with imports in functions and for types": find_modules_in_cycles(ever),
        "rooms that import cli": importers_of_cli(trees | scripts),
        "functions that open config.json": readers_of_config(trees),
        "files that check a model": files_that_check_models(trees),
        "copies of 8 lines or more": copies(texts),
    }


def _where(sizes: dict[str, int], is_wanted: Callable[[int], bool]) -> list[str]:
    return [name for name, size in sizes.items() if is_wanted(size)]


def _is_warned(num_lines: int) -> bool:
    return num_lines > WARNED_FILE_LINES


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--fragments", action="store_true", help="List the docstrings that look like fragments."
    )
    parser.add_argument(
        "--hints", action="store_true", help="List the places of the counts that have no limit."
    )
    arguments = parser.parse_args()
    sources = read_sources()
    _print_lines(sources)
    print(f"{'one' if import_cycle(sources) else 'no':>6} import cycle")
    _print_functions(sources)
    _print_docstrings(sources, shows_fragments=arguments.fragments)
    for title, lines in hints(sources).items():
        print(f"{len(lines):6,} {title} (a hint, no limit)")
        for line in lines if arguments.hints else ():
            print(f"         {line}")
    _print_layout(sources)
    broken = broken_limits(sources)
    print(f"{len(broken):6,} broken limits")
    for line in broken:
        print(f"         {line}")
    return 1 if broken else 0


def _print_lines(sources: list[Source]) -> None:
    lines = Counter[Path]()
    for source in sources:
        lines[source.path.parent] += source.num_lines
    longest = max(source.num_lines for source in sources)
    print(f"{lines.total():6,} lines in {len(sources)} files, the longest {longest}")
    for folder, num_lines in sorted(lines.items()):
        print(f"{num_lines:6,}   {folder}")


def _print_layout(sources: list[Source]) -> None:
    folders = files_by_folder(Path(ROOT.name) / source.path for source in sources)
    folder, num_files = folders.most_common(1)[0]
    print(f"{num_files:6,} files in the fullest folder, {folder}")
    lines = lines_by_top_folder()
    parts = ", ".join(f"{folder} {number:,}" for folder, number in lines.most_common())
    print(f"{lines.total():6,} lines of Python in the repository: {parts}")


def _print_functions(sources: list[Source]) -> None:
    functions = [function for source in sources for function in source.functions()]
    lengths = [function.num_lines for function in functions]
    complexity = max(function.complexity for function in functions)
    print(
        f"{len(functions):6,} functions: lines {median(lengths):g} in the median and "
        f"{max(lengths)} at most, complexity {complexity} at most"
    )


def _print_docstrings(sources: list[Source], *, shows_fragments: bool) -> None:
    docstrings = [docstring for source in sources for docstring in source.docstrings()]
    fragments = [docstring for docstring in docstrings if is_fragment(docstring.text)]
    print(
        f"{len(docstrings):6,} docstrings, "
        f"{len(fragments)} of them perhaps fragments (a hint, no limit)"
    )
    for docstring in fragments if shows_fragments else ():
        print(f"         {docstring.place} {docstring.text.splitlines()[0]}")


if __name__ == "__main__":
    sys.exit(main())
