"""Keeps some operations in float32 while the rest of the model computes in bf16 or f16.

The CPU plugin does not change the precision of an operation with the runtime attribute
DisablePrecisionConversion. Python cannot make this attribute, so it is read from a small IR and
attached to other nodes.
"""

from functools import cache
from typing import Any

from ouzel.backends.openvino.graph.nodes import Node, get_output
from ouzel.backends.openvino.library import ov

_KEY = "DisablePrecisionConversion_0"
_IR = """<?xml version="1.0"?>
<net name="marked" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1">
      <data shape="1" element_type="f32"/>
      <rt_info>
        <attribute name="DisablePrecisionConversion" version="0" value="dynamic:bf16,f16"/>
      </rt_info>
      <output><port id="0" precision="FP32"><dim>1</dim></port></output>
    </layer>
    <layer id="1" name="y" type="Result" version="opset1">
      <input><port id="0" precision="FP32"><dim>1</dim></port></input>
    </layer>
  </layers>
  <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>
</net>
"""


def keep_float32(results: list[Node], *rows: Node) -> None:
    """Marks all operations between the rows and these results; the rows stay as they are."""
    seen = {get_output(each).get_node().get_name() for each in rows}
    waiting = [get_output(result).get_node() for result in results]
    while waiting:
        node = waiting.pop()
        if node.get_name() in seen or node.get_type_name() == "Constant":
            continue
        seen.add(node.get_name())
        node.set_rt_info(_attribute(), _KEY)
        waiting += [value.get_node() for value in node.input_values()]


@cache
def _attribute() -> Any:  # Any: openvino's type stubs leave it open
    """Any: openvino's type stubs leave it open"""
    (marked,) = ov.Core().read_model(_IR.encode()).get_parameters()
    return marked.get_rt_info()[_KEY]
