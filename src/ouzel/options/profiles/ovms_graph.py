"""Reads `graph.pbtxt`, OpenVINO Model Server's description of a model, as Ouzel's options."""

from pathlib import Path

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_calculators import CALCULATORS, OF_TWO_MODELS
from ouzel.options.profiles.ovms_graph_fields import Calculator, read_fields
from ouzel.options.profiles.ovms_meanings import Settings
from ouzel.options.profiles.text_proto import Message, TextProtoError, read_text_proto

GRAPH_FILE = "graph.pbtxt"
_MAX_BYTES = 2**20


class NotALanguageModel(Exception):
    """The message tells why a servable of OVMS cannot be served here."""


def read_graph(path: Path) -> Settings:
    """Returns the options of the model, `model` included.

    Raises InvalidOption and NotALanguageModel.
    """
    try:
        if not path.is_file() and path.exists():
            raise InvalidOption("must be an ordinary file")
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidOption(f"must be at most {_MAX_BYTES} bytes long")
        graph = read_text_proto(path.read_text(encoding="utf-8"))
        calculator, node = _find_model(graph)
        return read_fields(calculator, _find_options(node, calculator.message), path.parent)
    except OSError as error:
        raise InvalidOption(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, TextProtoError, InvalidOption) as error:
        raise InvalidOption(f"{path}: {error}") from error


def _find_model(graph: Message) -> tuple[Calculator, Message]:
    """Returns the node of the model; there must be exactly one.

    Raises InvalidOption and NotALanguageModel.
    """
    nodes = [(name, node) for node in graph.messages("node") for name in node.texts("calculator")]
    if not nodes:  # an editor may have emptied the file and not filled it yet
        raise InvalidOption("node: must be present, with a calculator")
    found = [(CALCULATORS[name], node) for name, node in nodes if name in CALCULATORS]
    if not found:
        names = [name for name, _ in nodes]
        advice = next((_advise(name) for name in names if name in OF_TWO_MODELS), "")
        raise NotALanguageModel(f"its graph has {', '.join(names)}{advice}")
    if len(found) > 1:
        raise InvalidOption(f"node: exactly one must be a model, given {len(found)}")
    return found[0]


def _advise(calculator: str) -> str:
    return (
        f"; {calculator} takes a tokenizer and a model from two servables: export the checkpoint "
        f"again for {OF_TWO_MODELS[calculator]}, or make its directory the base_path"
    )


def _find_options(node: Message, message: str) -> Message:
    places = [*node.messages("node_options"), *node.messages("options")]
    found = [
        value
        for place in places
        for name, value in place.fields
        if name.rpartition("/")[2].removesuffix(".ext") == message and isinstance(value, Message)
    ]
    if len(found) != 1:
        raise InvalidOption(f"node_options: must hold {message} once, given {len(found)} of it")
    return found[0]
