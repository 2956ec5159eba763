"""Measures the package by the limits of the house, and exits with 1 where one of them is broken.

    uv run python -m tools.house.measure [--fragments]

Only the text of the files is read: nothing of the package is imported.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

from tools.house.fragments import is_fragment

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
    """One file; `path` begins below `ROOT`."""

    module: str
    path: Path
    num_lines: int
    tree: ast.Module

    def functions(self) -> Iterator[Function]:
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode):
                place = f"{self.path}:{node.lineno} {node.name}"
                yield Function(
                    place, (node.end_lineno or node.lineno) - node.lineno + 1, complexity_of(node)
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
        source.module: set(_imported(source.tree, modules)) - {source.module} for source in sources
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]  # it comes from the imported to who imports it
    return []


def _imported(node: ast.AST, modules: set[str]) -> Iterator[str]:
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
                yield from _imported(ast.Module(otherwise, []), modules)
            case _:
                yield from _imported(child, modules)


# Complexity


def complexity_of(function: FunctionNode) -> int:
    """Returns 1, and 1 for every decision, also inside expressions and nested functions.

    Unlike ruff's C901 it counts conditional expressions, comprehensions and each further operand of `and` and `or`,
    for a reader has to decide there too. The cases of a `match` are a table, and count nothing.
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
                    f"{function.place} has {function.num_lines} lines, the limit is {MAX_FUNCTION_LINES}"
                )
            if function.complexity > MAX_COMPLEXITY:
                broken.append(
                    f"{function.place} has complexity {function.complexity}, the limit is {MAX_COMPLEXITY}"
                )
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--fragments", action="store_true", help="List the docstrings that look like fragments."
    )
    arguments = parser.parse_args()
    sources = read_sources()
    _print_lines(sources)
    print(f"{'one' if import_cycle(sources) else 'no':>6} import cycle")
    _print_functions(sources)
    _print_docstrings(sources, shows_fragments=arguments.fragments)
    broken = broken_limits(sources)
    print(f"{len(broken):6,} broken limits")
    for line in broken:
        print(f"         {line}")
    return 1 if broken else 0


def _print_lines(sources: list[Source]) -> None:
    lines = Counter[Path]()
    for source in sources:
        lines[source.path.parent] += source.num_lines
    print(
        f"{lines.total():6,} lines in {len(sources)} files, the longest {max(source.num_lines for source in sources)}"
    )
    for folder, num_lines in sorted(lines.items()):
        print(f"{num_lines:6,}   {folder}")


def _print_functions(sources: list[Source]) -> None:
    functions = [function for source in sources for function in source.functions()]
    lengths = [function.num_lines for function in functions]
    complexity = max(function.complexity for function in functions)
    print(
        f"{len(functions):6,} functions: lines {median(lengths):g} in the median and {max(lengths)} at most",
        end="",
    )
    print(f", complexity {complexity} at most")


def _print_docstrings(sources: list[Source], *, shows_fragments: bool) -> None:
    docstrings = [docstring for source in sources for docstring in source.docstrings()]
    fragments = [docstring for docstring in docstrings if is_fragment(docstring.text)]
    print(
        f"{len(docstrings):6,} docstrings, {len(fragments)} of them perhaps fragments (a hint, no limit)"
    )
    for docstring in fragments if shows_fragments else ():
        print(f"         {docstring.place} {docstring.text.splitlines()[0]}")


if __name__ == "__main__":
    sys.exit(main())
