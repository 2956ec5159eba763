"""Which part of a model is compressed to how many bits."""

from dataclasses import dataclass

from ouzel.backends.openvino.weights.encodings import WidthOption


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """The embedding and the output layer suffer most from few bits: int4 models keep them in int8."""

    layers: WidthOption
    embedding: WidthOption
    head: WidthOption

    @classmethod
    def of(cls, width: WidthOption) -> "WeightPlan":
        outer: WidthOption = "int8" if width == "int4" else width
        return cls(width, outer, outer)
