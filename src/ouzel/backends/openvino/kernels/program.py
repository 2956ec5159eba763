"""Joins the operations of the kernels that follow each other into one operation of the graph.

The plugin spends 20 to 40 microseconds on each operation of a graph with dynamic shapes, more than
some of the operations take. In a program the kernels run them one after the other.
"""

from collections.abc import Sequence

from ouzel.backends.openvino.graph.nodes import Node, readers
from ouzel.backends.openvino.kernels.attention import ATTENTION
from ouzel.backends.openvino.kernels.library import Kernels, find_kernels, make_operation
from ouzel.backends.openvino.kernels.products import EMBEDDING, EXPERTS, FEED_FORWARD, LINEAR
from ouzel.backends.openvino.library import ov

PROGRAM = "OuzelProgram"
_OPERATIONS = {LINEAR, FEED_FORWARD, EXPERTS, EMBEDDING, ATTENTION}
# operations of the runtime that copy rows
_COPIES = {"Parameter", "Constant", "Result", "Gather", "Convert", "Concat"}


def keep_row_bits(graphs: Sequence[ov.Model], *, may_be_wide: bool) -> bool:
    """Tells whether the bits of a row are the same beside any other rows of a step.

    `graphs` are the graphs of a model in the order of `LanguageModel.graphs`. The second one, a
    prediction layer, decides no token. The bits are the same if the kernels compute all others, and
    no rows in bf16.
    """
    kernels = find_kernels()
    if not isinstance(kernels, Kernels) or (may_be_wide and kernels.has_wide_rows):
        return False
    deciding = (*graphs[:1], *graphs[2:])
    names = {node.get_type_name() for graph in deciding for node in graph.get_ops()}
    return names <= {PROGRAM, *_OPERATIONS, *_COPIES}


def join_programs(graph: ov.Model) -> None:
    """Changes the graph in place."""
    for number, operations in enumerate(_find_programs(graph)):
        if len(operations) > 1:
            _join(number, operations)


def _find_programs(graph: ov.Model) -> list[list[Node]]:
    """Divides the operations of the kernels into programs, in the order of the graph.

    An operation begins a new program if it depends on another operation of the graph that depends
    on the current program. So no program needs a value of a later program.
    """
    programs: list[list[Node]] = [[]]
    inside: set[str] = set()  # names of the current program's operations
    after: set[str] = set()  # names of other operations that depend on them
    for node in graph.get_ordered_ops():
        name = node.get_name()
        sources = {value.get_node().get_name() for value in node.input_values()}
        if node.get_type_name() not in _OPERATIONS:
            if sources & (inside | after):
                after.add(name)
            continue
        if sources & after:
            programs.append([])
            inside, after = set(), set()
        programs[-1].append(node)
        inside.add(name)
    return programs


def _join(number: int, operations: list[Node]) -> None:
    names = {node.get_name() for node in operations}
    for node in operations:
        node.set_attribute("program", number)
    results = [
        output
        for node in operations
        for output in node.outputs()
        if any(reader.get_name() not in names for reader in readers(output))
    ]
    program = make_operation(PROGRAM, results)
    for index, result in enumerate(results):
        for port in list(result.get_target_inputs()):
            if port.get_node().get_name() not in names:
                port.replace_source_output(program.output(index))
