"""`--weights` names the width of each part: `int4`, or `int4,head=int4,experts=int8`."""

from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

Width = Literal["int8", "int4", "bf16", "f32"]
# auto: compressed weights stay as they are stored, the rest becomes int8
WidthOption = Literal["auto"] | Width
WIDTHS: tuple[str, ...] = ("auto", *get_args(Width))
PARTS = ("layers", "experts", "embedding", "head")
BITS_OF_INTEGERS: dict[str, int] = {"int8": 8, "int4": 4}


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """Tells the width of each part of a model, and how quantised matrices are treated.

    A matrix that is stored in at most as many bits as its part's width is treated as under `auto`,
    unless `recompress` is set. bf16 and f32 always decode quantised matrices.
    """

    layers: WidthOption
    experts: WidthOption
    embedding: WidthOption
    head: WidthOption
    # The width of a matrix that is both embedding and head; None if their widths contradict.
    tied: WidthOption | None
    recompress: bool = False

    @property
    def integer_widths(self) -> frozenset[str]:
        """Returns the integer widths that the plan names; auto is none."""
        return (
            frozenset((self.layers, self.experts, self.embedding, self.head))
            & BITS_OF_INTEGERS.keys()
        )

    def with_auto(self, width: Width) -> "WeightPlan":
        """Returns the plan with this width in place of auto."""
        auto: dict[str, Any] = {
            name: width for name in (*PARTS, "tied") if getattr(self, name) == "auto"
        }
        return replace(self, **auto)

    def __str__(self) -> str:
        """Returns the plan as `read_weights` reads it, without widths that are implied."""
        usual = read_weights(self.layers)
        others = (part for part in PARTS if getattr(self, part) != getattr(usual, part))
        return ",".join([self.layers, *(f"{part}={getattr(self, part)}" for part in others)])


def read_weights(text: str, *, recompress: bool = False) -> WeightPlan:
    """Reads the width of the model and the widths of parts that differ.

    Embedding and head suffer most from few bits: an int4 model keeps them in int8 unless they are
    named. If they are one matrix, the width of the named one counts. Raises ValueError.
    """
    first, *others = text.split(",")
    model = _width(first)
    named: dict[str, WidthOption] = {}
    for item in others:
        part, equals, width = item.partition("=")
        if not equals or part not in PARTS or part in named:
            fault = "once" if part in named else f"as one of {', '.join(PARTS)}"
            raise ValueError(f"a part must be named {fault}, as in int4,head=int4")
        named[part] = _width(width)
    outer = "int8" if model == "int4" else model
    ends = {named[part] for part in ("embedding", "head") if part in named} or {outer}
    return WeightPlan(
        layers=named.get("layers", model),
        experts=named.get("experts", model),
        embedding=named.get("embedding", outer),
        head=named.get("head", outer),
        tied=ends.pop() if len(ends) == 1 else None,
        recompress=recompress,
    )


def _width(name: str) -> WidthOption:
    if name not in WIDTHS:
        raise ValueError(f"a width must be one of {', '.join(WIDTHS)}")
    return cast(WidthOption, name)
