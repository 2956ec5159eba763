"""OpenVINO is imported here only, because its import would report to its makers.

`import openvino` starts a thread that sends an event to an analytics host, and writes a client id
and statistics to the home directory. It takes a stand-in that does nothing where the package
`openvino_telemetry` is missing: so that is declared missing in this process first. An embedding
program that has imported either before has decided for itself.

Half of that import is the converter of other frameworks' models, `openvino.convert_model`, which is
left out in the same way and may be imported later from where it is, `openvino.tools.ovc`.
"""

import sys
from functools import cache
from pathlib import Path

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # None: importing it fails from now on
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
    "internal_operations",
    "op",
    "ops",
    "ops1",
    "ops17",
    "ov",
    "paged_attention_transformation",
]


@cache
def internal_operations() -> NodeFactory:
    """Returns the factory that knows the operations of the CPU plugin, which are in no opset. It
    loads that library.

    Raises RuntimeError where it cannot be loaded.
    """
    factory = NodeFactory("opset13")
    for library in sorted((Path(ov.__file__).parent / "libs").glob("*openvino_*_cpu_plugin.*")):
        factory.add_extension(library)
    return factory
