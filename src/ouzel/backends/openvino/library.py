"""Imports OpenVINO without its telemetry; all other modules take OpenVINO from here.

`import openvino` starts a thread that sends an event to an analytics host, and writes a client id
and statistics to the home directory. If the package `openvino_telemetry` is missing, OpenVINO uses
a stub that does nothing. So this module declares the package missing in this process first. A
program that embeds Ouzel and has imported either package before has made its own choice.

Half of the import time goes to `openvino.convert_model`, the converter for models of other
frameworks. This module leaves it out in the same way; `openvino.tools.ovc` can still be imported
later.
"""

import sys
from functools import cache
from pathlib import Path

# With None in sys.modules every later import of the package fails.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
_CONVERTER = "openvino.tools.ovc"
_leaves_converter_out = sys.modules.setdefault(_CONVERTER, None) is None  # type: ignore[arg-type]

import openvino as ov  # noqa: E402
from openvino import op  # noqa: E402
from openvino import opset1 as ops1  # noqa: E402
from openvino import opset13 as ops  # noqa: E402
from openvino import opset17 as ops17  # noqa: E402
from openvino._offline_transformations import paged_attention_transformation  # noqa: E402
from openvino.utils.node_factory import NodeFactory  # noqa: E402

if _leaves_converter_out:
    del sys.modules[_CONVERTER]

__all__ = [
    "NodeFactory",
    "internal_operations",
    "load_operations",
    "op",
    "ops",
    "ops1",
    "ops17",
    "ov",
    "paged_attention_transformation",
]


@cache
def internal_operations() -> NodeFactory:
    """Returns the factory for operations of the CPU plugin that are in no opset.

    Loads the plugin's library. Raises RuntimeError if the library cannot be loaded.
    """
    libraries = (Path(ov.__file__).parent / "libs").glob("*openvino_*_cpu_plugin.*")
    return load_operations(*sorted(libraries))


def load_operations(*libraries: Path) -> NodeFactory:
    """Returns the factory for the operations of these libraries.

    Raises RuntimeError if a library cannot be loaded.
    """
    factory = NodeFactory("opset13")
    for library in libraries:
        factory.add_extension(library)
    return factory
