"""Reads the prose of a file: docstrings, comments and messages of Python, or paragraphs."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_STRING_OR_COMMENT = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' + r"'''(?:[^\\]|\\.)*?'''|" + r'"(?:[^"\\\n]|\\.)*"|'
    r"'(?:[^'\\\n]|\\.)*'|(#[^\n]*)",
    re.DOTALL,
)
_PRAGMA = re.compile(r"#\s*(?:noqa|type:|fmt:|ruff:|pragma|!)")


@dataclass(frozen=True, slots=True)
class Text:
    """A text is a piece of prose and the line of the file on which it begins."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Texts:
    """Holds the prose of one file, the names of its functions, and its lines."""

    path: Path
    lines: list[str]
    docstrings: list[Text] = field(default_factory=list)
    class_docstring_lines: set[int] = field(default_factory=set)
    comments: list[Text] = field(default_factory=list)  # comments that have lines of their own
    trailing_comments: list[Text] = field(default_factory=list)
    messages: list[Text] = field(default_factory=list)
    functions: list[Text] = field(default_factory=list)  # the names
    paragraphs: list[Text] = field(default_factory=list)  # the text of a document


def read_texts(path: Path, source: str) -> Texts:
    if path.suffix == ".md":
        return Texts(path, [], paragraphs=[*_paragraphs(source)])
    texts = Texts(path, source.splitlines())
    _add_nodes(texts, ast.parse(source))
    _add_comments(texts, source)
    return texts


def _add_nodes(texts: Texts, tree: ast.Module) -> None:
    """Adds docstrings, names of functions, and messages.

    In the package every string of four words or more is a message. Elsewhere most strings are
    prompts and test data, so only the texts of exceptions are messages.
    """
    docstrings = set[ast.expr]()
    for node in _statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | FunctionNode):
            if isinstance(node, FunctionNode):
                texts.functions.append(Text(node.lineno, node.name))
            if (docstring := _docstring_node(node)) is not None:
                docstrings.add(docstring)
                texts.docstrings.append(Text(docstring.lineno, ast.get_docstring(node) or ""))
                if isinstance(node, ast.ClassDef):
                    texts.class_docstring_lines.add(docstring.lineno)
        elif isinstance(node, ast.Raise) and not _is_package(texts.path):
            texts.messages.extend(_sentences(node, docstrings))
    if _is_package(texts.path):
        texts.messages.extend(_sentences(tree, docstrings))


def _is_package(path: Path) -> bool:
    return path.parts[0] == "src"


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the node and the statements inside it, without the much more numerous expressions."""
    yield node
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, name, ())
        if isinstance(inner, list):
            for statement in inner:
                yield from _statements(statement)


def _docstring_node(node: ast.Module | ast.ClassDef | FunctionNode) -> ast.expr | None:
    match node.body[:1]:
        case [ast.Expr(ast.Constant(str()) as constant)]:
            return constant
    return None


def _sentences(root: ast.AST, docstrings: set[ast.expr]) -> Iterator[Text]:
    for node in ast.walk(root):
        match node:
            case ast.Constant(str(value)) if value.count(" ") > 2 and node not in docstrings:
                yield Text(node.lineno, value)


def _add_comments(texts: Texts, source: str) -> None:
    """Adds the comments. Comments on consecutive lines of their own are joined."""
    line, position, last_line = 1, 0, -1
    for match in _STRING_OR_COMMENT.finditer(source):
        if (comment := match[1]) is None or _PRAGMA.match(comment):
            continue
        line += source.count("\n", position, match.start())
        position = match.start()
        text = comment.lstrip("#:").strip()
        if texts.lines[line - 1].lstrip().startswith("#"):
            if last_line == line - 1:
                first = texts.comments.pop()
                texts.comments.append(Text(first.line, f"{first.text} {text}"))
            else:
                texts.comments.append(Text(line, text))
            last_line = line
        else:
            texts.trailing_comments.append(Text(line, text))


def _paragraphs(document: str) -> Iterator[Text]:
    """Yields the paragraphs of a document, without code blocks. A row of a table is a paragraph."""
    paragraph: list[str] = []
    begin, is_code = 1, False
    for number, line in enumerate([*document.splitlines(), ""], start=1):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        is_code ^= is_fence
        ends = is_fence or is_code or not line.strip() or line.lstrip().startswith(("|", "- ", "#"))
        if ends and paragraph:
            yield Text(begin, " ".join(paragraph))
            paragraph = []
        if not (is_fence or is_code or line.startswith("    ")) and line.strip():
            begin = begin if paragraph else number
            paragraph.append(line.strip(" |#-"))
