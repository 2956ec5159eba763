"""Reads OVMS's `config.json`, a list of models, as entries of Ouzel's `models`.

The file may list models for chats, embeddings and ranking; other models are left out, with a
warning.
A wrong entry is recorded by the name of its model: it ends a start, and in a reload its model stays
as it is while other models come and go. Unknown keys are ignored with a warning, since a newer
release of OVMS may have added them.
"""

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_graph import GRAPH_FILE, NotALanguageModel
from ouzel.options.profiles.ovms_meanings import Settings, Values, take_setting
from ouzel.options.profiles.ovms_servable import read_servable
from ouzel.options.seen_files import Stamp, read_stamp
from ouzel.terminal.suggestion import did_you_mean

_OF_THE_SERVER = "max_choices"
_OF_CLASSIC_MODELS = frozenset(
    {
        *(
            "batch_size",
            "shape",
            "layout",
            "mean",
            "scale",
            "color_format",
            "precision",
            "model_version_policy",
        ),
        *(
            "nireq",
            "stateful",
            "idle_sequence_cleanup",
            "low_latency_transformation",
            "max_sequence_number",
        ),
        *("custom_loader_options", "allow_cache", "subconfig"),
    }
)
_SCHEMES = ("s3://", "gs://", "az://", "azfs://", "as://")


class _Pipeline(msgspec.Struct):
    name: str


class _Entry(msgspec.Struct):
    """The keys of an entry of either list, without the keys of classic models."""

    name: str
    base_path: str = ""
    graph_path: str = ""
    target_device: str = ""
    plugin_config: dict[str, object] | str = ""
    group_name: str = ""


class _Listed(msgspec.Struct):
    config: dict[str, object]


class _File(msgspec.Struct):
    model_config_list: list[dict[str, object]] = []
    mediapipe_config_list: list[dict[str, object]] = []
    pipeline_config_list: list[_Pipeline] = []
    custom_node_library_config_list: list[dict[str, object]] = []  # the key of pipelines
    custom_loader_config_list: list[dict[str, object]] = []  # the key of classic models
    monitoring: dict[str, object] = {}
    idle_unload_timeout_seconds: Annotated[float, Meta(ge=0)] = 0


@dataclass(frozen=True, slots=True)
class _Listing:
    """An entry of the file, and notes about its unknown keys."""

    entry: _Entry
    without_meaning: tuple[str, ...]
    unknown: tuple[str, ...]  # sentences of the log


@dataclass(slots=True)
class OvmsConfig:
    """The models of the file, and lines for the log."""

    path: Path
    entries: list[Values] = field(default_factory=list)  # entries in the form of `models`
    problems: dict[str, str] = field(default_factory=dict)  # errors by the name of the model
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    stamps: dict[Path, Stamp] = field(default_factory=dict)  # taken before the files were read
    # seconds without requests after which a group is unloaded; 0: groups stay in memory
    idle_unload_s: float = 0


def read_ovms_config(path: Path, ours: Mapping[str, object]) -> OvmsConfig:
    """Reads the file; options in `ours` beat the options of graphs.

    Raises InvalidOption if the file itself is wrong; the faults of single models are collected.
    """
    path = Path(os.path.abspath(path))
    config = OvmsConfig(path, stamps={path: read_stamp(path)})
    try:
        keys = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        content = msgspec.convert(keys, _File)
        listings = [*_listings(content)]
    except OSError as error:
        raise InvalidOption(f"--config_path {path}: {error.strerror}") from error
    except RecursionError as error:
        raise InvalidOption(f"--config_path {path}: its objects are nested too deep") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidOption(f"--config_path {path}: {error}") from error
    # the flag is a number as text; the reader of the options reports any other text
    of_flag = str(ours.get("idle_unload_s", ""))
    config.idle_unload_s = content.idle_unload_timeout_seconds or (
        float(of_flag) if of_flag.isdecimal() else 0
    )
    config.warnings += [f"{path}: {sentence}" for sentence in _warn_of_unknown(keys, _File)]
    if content.monitoring:
        config.remarks.append(
            "OpenVINO Model Server's monitoring has no meaning here: metrics are always at /metrics"
        )
    for listing in listings:
        _take(config, listing, ours)
    config.warnings += [
        _left_out(each.name, "it is a pipeline") for each in content.pipeline_config_list
    ]
    return config


def _listings(content: _File) -> Iterator[_Listing]:
    """Yields the entries of `model_config_list` and `mediapipe_config_list`.

    Raises msgspec.ValidationError.
    """
    for listed in content.model_config_list:
        yield _listing(msgspec.convert(listed, _Listed).config, _warn_of_unknown(listed, _Listed))
    for fields in content.mediapipe_config_list:
        yield _listing(fields, ())


def _listing(fields: Mapping[str, object], unknown: tuple[str, ...]) -> _Listing:
    """Reads one model's entry of the file.

    `unknown` are warnings about unknown keys beside the entry. Raises msgspec.ValidationError.
    """
    entry = msgspec.convert(fields, _Entry)
    if not entry.name:
        raise msgspec.ValidationError("each model must have a `name`")
    if "\0" in entry.name + entry.base_path + entry.graph_path:
        raise msgspec.ValidationError(f"{entry.name!r}: a name or a path must have no NUL in it")
    return _Listing(
        entry,
        without_meaning=tuple(sorted(_OF_CLASSIC_MODELS & fields.keys())),
        unknown=(*unknown, *_warn_of_unknown(fields, _Entry, _OF_CLASSIC_MODELS)),
    )


def _warn_of_unknown(
    fields: Mapping[str, object],
    record: type[msgspec.Struct],
    further: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    known = [*record.__struct_fields__, *further]
    unknown = [key for key in fields if key not in known]
    return tuple(
        f"the key {key[:80]!r} is unknown and is ignored{did_you_mean([key], known)}"
        for key in unknown
    )


def _take(config: OvmsConfig, listing: _Listing, ours: Mapping[str, object]) -> None:
    entry = listing.entry
    name = entry.name
    if name in config.problems or any(known["name"] == name for known in config.entries):
        config.problems[name] = f"{name}: must be the name of one model, given twice"
        config.entries = [known for known in config.entries if known["name"] != name]
        return
    if entry.base_path.startswith(_SCHEMES):
        config.warnings.append(_left_out(name, f"{entry.base_path} is not on this machine"))
        return
    directory = config.path.parent / (entry.base_path or name)
    graph_path = directory / entry.graph_path if entry.graph_path else None
    graph = graph_path or directory / GRAPH_FILE
    config.stamps[graph] = read_stamp(graph)
    try:
        settings = _settings(entry, directory, graph_path)
        config.entries.append(_values(settings, name, ours) | _read_group(config, entry))
    except NotALanguageModel as error:
        config.warnings.append(_left_out(name, str(error)))
        return
    except InvalidOption as error:
        config.problems[name] = f"{name}: {error}"
        return
    except OSError as error:
        config.problems[name] = (
            f"{name[:80]}: {str(directory)[:200]} cannot be read: {error.strerror}"
        )
        return
    without_meaning = [*listing.without_meaning, *settings.without_meaning]
    config.remarks += _remark_on_group(config, entry)
    config.remarks += [
        f"{name}: OpenVINO Model Server's {key} has no meaning here" for key in without_meaning
    ]
    warnings = [*listing.unknown, *settings.warnings]
    config.warnings += [f"{name}: {sentence}" for sentence in warnings]


def _remark_on_group(config: OvmsConfig, entry: _Entry) -> list[str]:
    if not entry.group_name or config.idle_unload_s:
        return []
    return [f"{entry.name}: group_name has no meaning without idle_unload_timeout_seconds"]


def _read_group(config: OvmsConfig, entry: _Entry) -> Values:
    """Returns the options of the entry's group, if groups are unloaded."""
    if not config.idle_unload_s:
        return {}
    return {"group": entry.group_name or entry.name, "idle_unload_s": config.idle_unload_s}


def _settings(entry: _Entry, directory: Path, graph_path: Path | None) -> Settings:
    """Returns the options of the entry, which the options of the graph override."""
    settings = Settings()
    graph = read_servable(directory, graph_path)
    if entry.target_device:
        take_setting(settings, "target_device", entry.target_device)
    if entry.plugin_config:
        plugin_config = entry.plugin_config
        text = (
            plugin_config
            if isinstance(plugin_config, str)
            else msgspec.json.encode(plugin_config).decode()
        )
        take_setting(settings, "plugin_config", text)
    return settings.below(graph)


def _values(settings: Settings, name: str, ours: Mapping[str, object]) -> Values:
    """Returns the values for `models`. Raises InvalidOption for a limit that all models share."""
    own = {
        key: value for key, value in settings.values.items() if key == "model" or key not in ours
    }
    if _OF_THE_SERVER in own:
        raise InvalidOption(
            f"best_of_limit: is one for all models here: start with --max-choices "
            f"{own[_OF_THE_SERVER]} instead"
        )
    return own | {"name": name}


def _left_out(name: str, reason: str) -> str:
    return f"{name} is not served: {reason}"
