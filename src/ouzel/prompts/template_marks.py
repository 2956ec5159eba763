"""A template's own texts get brackets around the control tokens in them before it is compiled (`marked_text.py`).

Only what may reach the prompt gets them. What a template compares, looks for or splits at does not, and values are
compared without theirs: a template finds `</think>` in an earlier answer as if there were no brackets.
"""

from collections.abc import Iterator, Mapping
from types import BuiltinMethodType

from jinja2 import nodes

from ouzel.prompts.marked_text import BEGIN, Brackets, bare, bare_where_found

BARE = "ouzel_bare"  # the filter that takes brackets out

_WRITING_FILTERS = ("default", "d", "join")  # whose arguments may reach the prompt
_SILENT_FUNCTIONS = ("raise_exception", "strftime_now")
_TELLING = ("count", "endswith", "find", "index", "rfind", "rindex", "startswith")  # which give no text
_SEARCHES = (
    *_TELLING,
    *("get", "lstrip", "partition", "removeprefix", "removesuffix", "rpartition", "rsplit", "rstrip", "split", "strip"),
)


def bracket_texts(template: nodes.Template, brackets: Brackets) -> None:
    for node, reaches_prompt in _texts(template, True):
        if reaches_prompt and isinstance(node, nodes.TemplateData):
            node.data = brackets.around_all(node.data)
        elif reaches_prompt and isinstance(node, nodes.Const):
            node.value = brackets.around_all(node.value)
    for comparison in list(template.find_all(nodes.Compare)):
        comparison.expr = _bare(comparison.expr)
        for operand in comparison.ops:
            operand.expr = _bare(operand.expr)
    for item in list(template.find_all(nodes.Getitem)):
        item.arg = _bare(item.arg)
    for test in list(template.find_all(nodes.Test)):
        if test.args:
            test.node, test.args = _bare(test.node), [_bare(argument) for argument in test.args]
    for each in list(template.find_all(nodes.Filter)):
        if each.name not in (*_WRITING_FILTERS, "replace", BARE):
            each.args = list(map(_bare, each.args))


def _texts(node: nodes.Node, reaches_prompt: bool) -> Iterator[tuple[nodes.TemplateData | nodes.Const, bool]]:
    if isinstance(node, nodes.TemplateData) or (isinstance(node, nodes.Const) and isinstance(node.value, str)):
        yield node, reaches_prompt
    silent = list(_silent_children(node))
    for child in node.iter_child_nodes():
        yield from _texts(child, reaches_prompt and not any(child is each for each in silent))


def _silent_children(node: nodes.Node) -> Iterator[nodes.Node]:
    match node:
        case nodes.Compare():
            yield from node.iter_child_nodes()
        case nodes.Test():
            yield from node.args
        case nodes.Filter(name="replace"):
            yield from node.args[:1]
        case nodes.Filter() if node.name not in _WRITING_FILTERS:
            yield from (*node.args, *node.kwargs)
        case nodes.Call(node=nodes.Getattr(attr="replace" | "get")):
            yield from node.args[:1]
        case nodes.Call(node=nodes.Getattr(attr=name)) if name in _SEARCHES:
            yield from node.args
        case nodes.Call(node=nodes.Name(name=name)) if name in _SILENT_FUNCTIONS:
            yield from node.args
        case nodes.Getitem():
            yield node.arg
        case nodes.Pair():
            yield node.key
        case _:
            pass


def _bare(node: nodes.Expr) -> nodes.Expr:
    if isinstance(node, nodes.Tuple | nodes.List):
        node.items = list(map(_bare, node.items))
    if isinstance(node, nodes.Literal | nodes.Slice):
        return node
    return nodes.Filter(node, BARE, [], [], None, None)


def bare_value(value: object) -> object:
    """Is the filter `BARE`."""
    if isinstance(value, str):
        return bare(value)
    return tuple(map(bare_value, value)) if isinstance(value, tuple) else value


def search_without_brackets(method: object, arguments: tuple[object, ...]) -> tuple[object, tuple[object, ...]]:
    """Returns a text's method, if it is one that looks for a text, and its arguments, so that brackets hide nothing."""
    if not isinstance(method, BuiltinMethodType) or not isinstance(method.__self__, str | Mapping):
        return method, arguments
    name = method.__name__
    if name in ("replace", "get"):
        arguments = (*map(bare_value, arguments[:1]), *arguments[1:])
    elif name in _SEARCHES:
        arguments = tuple(map(bare_value, arguments))
    else:
        return method, arguments
    text = method.__self__
    if isinstance(text, str) and BEGIN in text:
        if name in _TELLING:
            return getattr(bare(text), name), arguments
        return getattr(_with_found_bare(text, arguments), name), arguments
    return method, arguments


def replace_without_brackets(text: str, old: str, new: str, count: int | None = None) -> str:
    """Is the filter `replace`."""
    wanted = bare(str(old))
    return bare_where_found(str(text), wanted).replace(wanted, str(new), -1 if count is None else count)


def _with_found_bare(text: str, arguments: tuple[object, ...]) -> str:
    for argument in arguments:
        for wanted in argument if isinstance(argument, tuple) else (argument,):
            if isinstance(wanted, str):
                text = bare_where_found(text, wanted)
    return text
