"""Keeps the CPU plugin from computing a gated feed-forward layer as one operation on one thread.

On a CPU with AMX and in bf16 the plugin replaces down(activation(gate(x)) * up(x)) by one
operation, `LLMMLP`, if the matrices are not compressed. `LLMMLP` divides its work among pairs of
threads: with one thread it divides by zero pairs, and SIGFPE ends the process
(docs/decisions/0035-one-thread-on-amx.md). The plugin replaces only products of three dimensions
that may broadcast. Both factors of such a product have the same shape. So forbidding the product to
broadcast changes no number, and the plugin computes the layer as three operations.
"""

from collections.abc import Iterator

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops, ov

_RANK = 3


def keep_gates_apart(core: ov.Core, graph: ov.Model, properties: dict[str, object]) -> None:
    """Forbids the products of gates to broadcast if these properties mean one thread on the CPU."""
    products = list(gate_products(graph))
    if products and num_threads_on_cpu(core, properties) == 1:
        for product in products:
            product.set_attribute("auto_broadcast", "none")


def num_threads_on_cpu(core: ov.Core, properties: dict[str, object]) -> int:
    """Asks the plugin for the number of threads; its default is one for each core of the
    process.
    """
    names = ("PERFORMANCE_HINT", "INFERENCE_NUM_THREADS")
    value = ops.parameter([1], ov.Type.f32)
    smallest = ov.Model([ops.result(value)], [value], "smallest")
    compiled = core.compile_model(
        smallest, "CPU", {name: properties[name] for name in names if name in properties}
    )
    return int(compiled.get_property("INFERENCE_NUM_THREADS"))


def gate_products(graph: ov.Model) -> Iterator[Node]:
    """Yields the products activation(gate(x)) * up(x), the inputs of a down projection.

    Both factors come from products of the same rows with a matrix: two matrices, or one for both.
    """
    for node in graph.get_ops():
        if node.get_type_name() == "MatMul":
            product = node.input_value(0).get_node()
            if (
                product.get_type_name() == "Multiply"
                and product.get_output_partial_shape(0).rank == _RANK
                and not _broadcasts(product)
            ):
                rows = [find_multiplied_rows(value) for value in product.input_values()]
                if None not in rows and rows[0] == rows[1]:
                    yield product


def _broadcasts(product: Node) -> bool:
    """Tells whether the factors have different shapes: a voice model multiplies sines by a mask."""
    first, second = (value.get_partial_shape() for value in product.input_values())
    return not first.compatible(second)


def find_multiplied_rows(value: Node) -> tuple[str, int] | None:
    """Returns the output that is multiplied by the nearest matrix before this value, as name and
    index.

    Returns None if there is no matrix before the value.
    """
    node = value.get_node()
    while node.get_type_name() != "MatMul":
        sources = [each.get_node() for each in node.input_values()]
        computed = [source for source in sources if source.get_type_name() != "Constant"]
        if not computed:
            return None
        node = computed[0]
    rows = node.input_value(0)
    return rows.get_node().get_name(), rows.get_index()
