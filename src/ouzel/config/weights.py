"""`--weights` says what each part of a model is compressed to: `int4`, or `int4,head=int4,experts=int8`."""

from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

Width = Literal["int8", "int4", "bf16", "f32"]
WidthOption = (
    Literal["auto"] | Width
)  # auto: what is stored compressed stays so, the rest becomes int8
WIDTHS: tuple[str, ...] = ("auto", *get_args(Width))
PARTS = ("layers", "experts", "embedding", "head")
BITS_OF_INTEGERS: dict[str, int] = {"int8": 8, "int4": 4}


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """The width of each part of a model, and what happens to matrices that the checkpoint stores quantised.

    A matrix that is stored in as many bits as the named width has, or in fewer, is treated as under `auto`, unless the
    plan says `recompress`. bf16 and f32 always decode quantised matrices.
    """

    layers: WidthOption
    experts: WidthOption
    embedding: WidthOption
    head: WidthOption
    tied: (
        WidthOption | None
    )  # of the one matrix that both may be; None: they were named with different widths
    recompress: bool = False

    @property
    def integer_widths(self) -> frozenset[str]:
        """Returns the integer widths that the plan names; auto is none."""
        return (
            frozenset((self.layers, self.experts, self.embedding, self.head))
            & BITS_OF_INTEGERS.keys()
        )

    def with_auto(self, width: Width) -> "WeightPlan":
        """Returns it with this width in place of auto."""
        auto: dict[str, Any] = {
            name: width for name in (*PARTS, "tied") if getattr(self, name) == "auto"
        }
        return replace(self, **auto)

    def __str__(self) -> str:
        """Writes it as `read_weights` reads it: the width of the layers, and the parts that it does not tell."""
        usual = read_weights(self.layers)
        others = (part for part in PARTS if getattr(self, part) != getattr(usual, part))
        return ",".join([self.layers, *(f"{part}={getattr(self, part)}" for part in others)])


def read_weights(text: str, *, recompress: bool = False) -> WeightPlan:
    """Reads the width of the model, and those of the parts that differ. Raises ValueError, which says what may stand.

    Embedding and head suffer most from few bits: unless they are named, an int4 model keeps them in int8. Where they
    are one matrix, it gets the width of whichever is named.
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
