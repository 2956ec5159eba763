"""Draws docstrings at random for a reader who has not seen the code.

    uv run python -m tools.house.sample [--seed 1] [--number 170] [--room ROOM] [--key KEY]

prints each docstring under a number, with the signature of its function or class and without code.
For each number, the reader describes the code. KEY is a file that gets the number, the file and the
line of each docstring, so that the answers can be checked. The same seed draws the same
docstrings as long as the files are the same.
"""

import argparse
import ast
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.house.rooms import REPOSITORY, find_room, is_in, python_files
from tools.house.texts import FunctionNode


class Described(NamedTuple):
    """Holds the docstring of a module, class or function, its place and its signature."""

    place: str
    signature: str
    docstring: str


def read_described(paths: Iterable[Path], root: Path = REPOSITORY) -> Iterator[Described]:
    for path in paths:
        tree = ast.parse((root / path).read_text())
        yield from _find_docstrings(tree, path, outer="")


def _find_docstrings(node: ast.AST, path: Path, outer: str) -> Iterator[Described]:
    """Yields the node, if it has a docstring, and the classes and functions inside it."""
    is_documentable = isinstance(node, ast.Module | ast.ClassDef | FunctionNode)
    if is_documentable and (docstring := ast.get_docstring(node)):
        place = f"{path}:{getattr(node, 'lineno', 1)}"
        yield Described(place, outer + _signature(node, path), docstring)
    if isinstance(node, ast.ClassDef):
        outer = f"{outer}{node.name}."
    for child in ast.iter_child_nodes(node):
        yield from _find_docstrings(child, path, outer)


def _signature(node: ast.AST, path: Path) -> str:
    """Returns the name and the arguments. The fields of a class belong to its signature."""
    match node:
        case ast.FunctionDef(name=name, args=arguments, returns=returns):
            return f"def {name}({ast.unparse(arguments)}){_arrow(returns)}"
        case ast.AsyncFunctionDef(name=name, args=arguments, returns=returns):
            return f"async def {name}({ast.unparse(arguments)}){_arrow(returns)}"
        case ast.ClassDef(name=name, bases=bases, body=body):
            fields = [ast.unparse(field) for field in body if isinstance(field, ast.AnnAssign)]
            inherited = f"({', '.join(map(ast.unparse, bases))})" if bases else ""
            return "\n    ".join([f"class {name}{inherited}", *fields])
    return f"module {path}"


def _arrow(returns: ast.expr | None) -> str:
    return f" -> {ast.unparse(returns)}" if returns else ""


def draw(described: Iterable[Described], number: int, seed: int) -> list[Described]:
    """Returns `number` of them, or all if there are fewer."""
    pool = sorted(described)
    return random.Random(seed).sample(pool, min(number, len(pool)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--number", type=int, default=170, help="How many docstrings to draw.")
    parser.add_argument("--seed", type=int, default=1, help="The seed of the random generator.")
    parser.add_argument("--room", default="src", help="Only files below this folder.")
    parser.add_argument("--key", type=Path, help="The file to write with the place of each number.")
    arguments = parser.parse_args()
    room = arguments.room.rstrip("/")
    paths = [path for path in python_files() if is_in(find_room(path), room)]
    drawn = draw(read_described(paths), arguments.number, arguments.seed)
    for number, described in enumerate(drawn, start=1):
        docstring = described.docstring.replace("\n", "\n    ")
        print(f'{number}. {described.signature}\n    """{docstring}"""\n')
    if arguments.key:
        places = (f"{number} {described.place}" for number, described in enumerate(drawn, start=1))
        arguments.key.write_text("\n".join(places) + "\n")


if __name__ == "__main__":
    main()
