"""The program prints three lines for CMake: OpenVINO's folder and version, and TBB's headers.

The interpreter that runs this has the packages openvino and tbb-devel.
"""

import sys
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

openvino = find_spec("openvino")  # without an import
if openvino is None or openvino.origin is None:
    sys.exit("the package openvino is not installed")
[header] = [
    file
    for file in distribution("tbb-devel").files or ()
    if file.parts[-3:] == ("include", "tbb", "task_arena.h")
]
print(Path(openvino.origin).parent)
print(distribution("openvino").version)
print(Path(str(header.locate())).resolve().parents[1])
