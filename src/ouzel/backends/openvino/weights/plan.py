"""Which part of a model is compressed to how many bits."""

from dataclasses import dataclass

from ouzel.backends.openvino.weights.encodings import Width


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """The embedding and the output layer suffer most from few bits: int4 models keep them in int8."""

    layers: Width
    embedding: Width
    head: Width

    @classmethod
    def of(cls, width: Width) -> "WeightPlan":
        outer: Width = "int8" if width == "int4" else width
        return cls(width, outer, outer)
