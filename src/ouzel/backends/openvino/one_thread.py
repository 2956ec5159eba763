"""The CPU plugin must not compute a gated feed-forward layer as one operation where it has one
thread.

On a CPU with AMX and in bf16 the plugin makes one operation, `LLMMLP`, of down(activation(gate(x))
* up(x)) whose matrices are not compressed. `LLMMLP` divides its work among pairs of threads: with
one thread it divides by zero pairs, and SIGFPE ends the process
(docs/decisions/0035-one-thread-on-amx.md). The plugin replaces products of three dimensions only,
and only products that may broadcast. Both factors of such a product have the same shape, so that
forbidding the product to broadcast changes no number, and the plugin computes the layer as three
operations.
"""

from collections.abc import Iterator

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops, ov

_RANK = 3


def keep_gates_apart(core: ov.Core, graph: ov.Model, properties: dict[str, object]) -> None:
    """Changes the graph where the CPU plugin would compile it for one thread with these properties."""
    products = list(gate_products(graph))
    if products and num_threads_on_cpu(core, properties) == 1:
        for product in products:
            product.set_attribute("auto_broadcast", "none")


def num_threads_on_cpu(core: ov.Core, properties: dict[str, object]) -> int:
    """Asks the plugin, which by itself takes one thread for each core that the process may use."""
    names = ("PERFORMANCE_HINT", "INFERENCE_NUM_THREADS")
    value = ops.parameter([1], ov.Type.f32)
    smallest = ov.Model([ops.result(value)], [value], "smallest")
    compiled = core.compile_model(
        smallest, "CPU", {name: properties[name] for name in names if name in properties}
    )
    return int(compiled.get_property("INFERENCE_NUM_THREADS"))


def gate_products(graph: ov.Model) -> Iterator[Node]:
    """Yields the products of two values that come from products of the same rows with a matrix, or
    with two.
    """
    for node in graph.get_ops():
        if node.get_type_name() == "MatMul":
            product = node.input_value(0).get_node()
            if (
                product.get_type_name() == "Multiply"
                and product.get_output_partial_shape(0).rank == _RANK
            ):
                rows = [rows_behind(value) for value in product.input_values()]
                if None not in rows and rows[0] == rows[1]:
                    yield product


def rows_behind(value: Node) -> tuple[str, int] | None:
    """Names the output whose rows the nearest matrix before this value multiplies, None where there
    is no matrix.
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
