"""Reads the graphs that `--pull` and `--configure` write."""

from pathlib import Path

from ouzel.options.profiles.ovms_graph import read_graph
from ouzel.options.profiles.text_proto import Message, read_text_proto


def read_graph_options(directory: Path) -> dict[str, object]:
    """Returns the options that a server would read from the directory's graph."""
    return read_graph(directory / "graph.pbtxt").values


def read_graph_fields(directory: Path) -> tuple[str, dict[str, str]]:
    """Returns the calculator of the directory's graph and the graph's options, as text."""
    [node] = read_text_proto((directory / "graph.pbtxt").read_text()).messages("node")
    [options] = node.messages("node_options")
    [(_, fields)] = options.fields
    assert isinstance(fields, Message)
    return node.texts("calculator")[0], {name: fields.texts(name)[0] for name, _ in fields.fields}
