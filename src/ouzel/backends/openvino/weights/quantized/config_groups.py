"""Reads the config_groups of compressed-tensors: the encodings of the matrices."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ouzel.backends.name_patterns import names_by_pattern
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

FORMATS = {
    *(
        "int-quantized",
        "float-quantized",
        "naive-quantized",
        "pack-quantized",
        "nvfp4-pack-quantized",
    ),
    *("mxfp4-pack-quantized", "mixed-precision", "dense"),
}
_KNOWN = {
    *(
        "quant_method",
        "config_groups",
        "format",
        "ignore",
        "quantization_status",
        "global_compression_ratio",
    ),
    *("kv_cache_scheme", "run_compressed", "version", "sparsity_config", "transform_config"),
}
ORDERED = ("group", "dynamic", True)  # values of actorder with which weight_g_idx is stored
PATTERN = "re:"  # prefix of a target that is a pattern
_KNOWN_OF_GROUP = {"targets", "weights", "input_activations", "output_activations", "format"}
_KNOWN_OF_WEIGHTS = {
    *(
        "num_bits",
        "type",
        "symmetric",
        "strategy",
        "group_size",
        "block_structure",
        "dynamic",
        "actorder",
    ),
    *("observer", "observer_kwargs", "scale_dtype", "zp_dtype"),
}


@dataclass(frozen=True, slots=True)
class ConfigGroup:
    targets: tuple[str, ...]  # names and classes of modules
    matched: frozenset[str]  # names of modules that the group's patterns match
    type: str  # int or float
    num_bits: int
    group_size: int  # columns in a group; 0: one scale for a row, or for all rows
    block: tuple[int, int]  # rows and columns of a block; 0, 0: no blocks
    is_symmetric: bool
    has_activations: bool
    has_column_order: bool  # weight_g_idx assigns columns to groups

    @property
    def summary(self) -> str:
        size = f"groups of {self.group_size}" if self.group_size else "rows"
        size = f"blocks of {self.block[0]}x{self.block[1]}" if self.block[0] else size
        return f"{self.type}{self.num_bits} in {size}"

    def require(self, type: str, widths: tuple[int, ...], name: str) -> None:
        """Raises ModelLoadError if the tensor's type is not the group's."""
        if self.type != type or self.num_bits not in widths:
            supported = " or ".join(f"{type}{width}" for width in widths)
            raise ModelLoadError(
                f"tensor {name} is stored as {supported}, but its config_group says "
                f"{self.type}{self.num_bits}"
            )


def read_config_groups(config: HfConfig, names: Collection[str]) -> tuple[ConfigGroup, ...]:
    """Reads the groups; `names` are the names of the checkpoint's modules. Raises
    ModelLoadError.
    """
    config.refuse_others(_KNOWN)
    if config.text("format", "dense") not in FORMATS:
        raise config.refuse("format", ", ".join(sorted(FORMATS)))
    sparsity = config.section("sparsity_config")
    if sparsity is not None and sparsity.text("format", "dense") != "dense":
        raise sparsity.refuse("format", "dense")
    transforms = config.section("transform_config")
    if transforms is not None:
        transforms.refuse_others(set())
    groups = config.section("config_groups") or HfConfig({})
    read = [_read_group(groups, name) for name in groups.values]
    patterns = {
        target.removeprefix(PATTERN)
        for group in read
        for target in group.targets
        if _is_pattern(target)
    }
    found = names_by_pattern(
        patterns, names, "config.json: quantization_config: config_groups: targets"
    )
    return tuple(
        replace(
            group,
            targets=tuple(target for target in group.targets if not _is_pattern(target)),
            matched=frozenset().union(
                *(found[t.removeprefix(PATTERN)] for t in group.targets if _is_pattern(t))
            ),
        )
        for group in read
    )


def _read_group(groups: HfConfig, name: str) -> ConfigGroup:
    group = groups.section(name)
    weights = None if group is None else group.section("weights")
    if group is None or weights is None:
        raise groups.refuse(name, "an object with targets and weights")
    group.refuse_others(_KNOWN_OF_GROUP)
    weights.refuse_others(_KNOWN_OF_WEIGHTS)
    if group.has("format") and group.text("format") not in FORMATS:
        raise group.refuse("format", ", ".join(sorted(FORMATS)))
    group_size = weights.integer("group_size", 0)  # -1: a channel is one
    strategy = weights.text(
        "strategy", "group" if group_size > 0 else "channel" if group_size else "tensor"
    )
    group_size, block = 0, (0, 0)
    match strategy:
        case "tensor" | "channel":
            pass
        case "group" | "tensor_group":
            group_size = weights.size("group_size")
        case "block":
            block_rows, block_columns = weights.integers("block_structure", 2)
            if min(block_rows, block_columns) < 1:
                raise weights.refuse("block_structure", "two positive integers")
            block = (block_rows, block_columns)
        case _:
            raise weights.refuse("strategy", "tensor, channel, group, tensor_group, block")
    return ConfigGroup(
        targets=_targets(group),
        matched=frozenset(),
        type=weights.text("type", "int"),
        num_bits=weights.integer("num_bits", 8),
        group_size=group_size,
        block=block,
        is_symmetric=weights.flag("symmetric", True),
        has_activations=group.has("input_activations"),
        has_column_order=weights.values.get("actorder") in ORDERED,
    )


def _targets(group: HfConfig) -> tuple[str, ...]:
    targets = group.values.get("targets")
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        raise group.refuse("targets", "a list of strings")
    return tuple(targets)


def find_group(groups: Sequence[ConfigGroup], *names: str) -> ConfigGroup:
    """Returns the group of a matrix: by one of its names, by a pattern, or by its class, in this
    order.

    If no group targets the matrix, all groups must have the same settings: names do not tell the
    classes of modules. Raises ModelLoadError if several groups with different settings match.
    """
    for matches in (_names, _matches, _has_class):
        found = [group for group in groups if any(matches(group, name) for name in names)]
        if found or matches is _has_class:
            break
    candidates = found or groups
    if not candidates or any(
        _without_targets(group) != _without_targets(candidates[0]) for group in candidates
    ):
        raise ModelLoadError(
            f"tensor {names[0]}.weight is quantised: exactly one of config.json's config_groups "
            f"must target it, found {len(found)}"
        )
    return candidates[0]


def _without_targets(group: ConfigGroup) -> ConfigGroup:
    return replace(group, targets=(), matched=frozenset())


def _names(group: ConfigGroup, name: str) -> bool:
    return name in group.targets


def _matches(group: ConfigGroup, name: str) -> bool:
    return name in group.matched


def _has_class(group: ConfigGroup, name: str) -> bool:
    return ("Embedding" if name.endswith("embed_tokens") else "Linear") in group.targets


def _is_pattern(target: str) -> bool:
    return target.startswith(PATTERN)
