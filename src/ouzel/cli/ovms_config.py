"""`config.json`, by which OpenVINO Model Server serves several models, becomes the mappings of our `models`.

What is no language model is left out, and named in a warning. An entry that is wrong is a problem of its name: it ends
a start, and on a reload its model stays as it is while the others come and go.
"""

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.ovms_graph import GRAPH_FILE, NotALanguageModel
from ouzel.cli.ovms_meanings import Settings, Values, take_setting
from ouzel.cli.ovms_servable import read_servable
from ouzel.cli.seen_files import Stamp, stamp_of

_OF_THE_SERVER = "max_choices"
_OF_CLASSIC_MODELS = frozenset(
    {
        *("batch_size", "shape", "layout", "mean", "scale", "color_format", "precision", "model_version_policy"),
        *("nireq", "stateful", "idle_sequence_cleanup", "low_latency_transformation", "max_sequence_number"),
        *("custom_loader_options", "allow_cache", "subconfig"),
    }
)
_SCHEMES = ("s3://", "gs://", "az://", "azfs://", "as://")


class _Pipeline(msgspec.Struct):
    name: str


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """Is of either list, less what only classic models have."""

    name: str
    base_path: str = ""
    graph_path: str = ""
    target_device: str = ""
    plugin_config: dict[str, object] | str = ""


class _Listed(msgspec.Struct, forbid_unknown_fields=True):
    config: dict[str, object]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    model_config_list: list[_Listed] = []
    mediapipe_config_list: list[dict[str, object]] = []
    pipeline_config_list: list[_Pipeline] = []
    custom_node_library_config_list: list[dict[str, object]] = []  # for pipelines
    custom_loader_config_list: list[dict[str, object]] = []  # for classic models
    monitoring: dict[str, object] = {}


@dataclass(slots=True)
class OvmsConfig:
    """Holds what the file says of language models, and what is to be said of the rest."""

    path: Path
    entries: list[Values] = field(default_factory=list)  # as those of `models`
    problems: dict[str, str] = field(default_factory=dict)  # by the name of the model
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    stamps: dict[Path, Stamp] = field(default_factory=dict)  # of the files, before they were read


def read_ovms_config(path: Path, ours: Mapping[str, object]) -> OvmsConfig:
    """Options of `ours` beat what graphs say. Raises InvalidOption where the file itself is wrong."""
    path = Path(os.path.abspath(path))
    config = OvmsConfig(path, stamps={path: stamp_of(path)})
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_File)
        entries = [*_entries(content)]
    except OSError as error:
        raise InvalidOption(f"--config_path {path}: {error.strerror}") from error
    except RecursionError as error:
        raise InvalidOption(f"--config_path {path}: its objects are nested too deep") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidOption(f"--config_path {path}: {error}") from error
    if content.monitoring:
        config.remarks.append("OpenVINO Model Server's monitoring has no meaning here: metrics are always at /metrics")
    for entry, unread in entries:
        _take(config, entry, unread, ours)
    config.warnings += [_left_out(each.name, "it is a pipeline") for each in content.pipeline_config_list]
    return config


def _entries(content: _File) -> Iterator[tuple[_Entry, list[str]]]:
    """Yields each with those of its keys that have no meaning for language models."""
    for fields in (*(listed.config for listed in content.model_config_list), *content.mediapipe_config_list):
        unread = sorted(_OF_CLASSIC_MODELS & fields.keys())
        entry = msgspec.convert({key: value for key, value in fields.items() if key not in unread}, _Entry)
        if not entry.name:
            raise msgspec.ValidationError("each model must have a `name`")
        if "\0" in entry.name + entry.base_path + entry.graph_path:
            raise msgspec.ValidationError(f"{entry.name!r}: a name or a path must have no NUL in it")
        yield entry, unread


def _take(config: OvmsConfig, entry: _Entry, unread: list[str], ours: Mapping[str, object]) -> None:
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
    config.stamps[graph] = stamp_of(graph)
    try:
        settings = _settings(entry, directory, graph_path)
        config.entries.append(_values(settings, name, ours))
    except NotALanguageModel as error:
        config.warnings.append(_left_out(name, str(error)))
        return
    except InvalidOption as error:
        config.problems[name] = f"{name}: {error}"
        return
    except OSError as error:
        config.problems[name] = f"{name[:80]}: {str(directory)[:200]} cannot be read: {error.strerror}"
        return
    unread = [*unread, *settings.without_meaning]
    config.remarks += [f"{name}: OpenVINO Model Server's {key} has no meaning here" for key in unread]


def _settings(entry: _Entry, directory: Path, graph_path: Path | None) -> Settings:
    """What the entry says is beaten by its graph."""
    settings = Settings()
    graph = read_servable(directory, graph_path)
    if entry.target_device:
        take_setting(settings, "target_device", entry.target_device)
    if entry.plugin_config:
        plugin_config = entry.plugin_config
        text = plugin_config if isinstance(plugin_config, str) else msgspec.json.encode(plugin_config).decode()
        take_setting(settings, "plugin_config", text)
    return Settings(settings.values | graph.values, settings.without_meaning + graph.without_meaning)


def _values(settings: Settings, name: str, ours: Mapping[str, object]) -> Values:
    """Raises InvalidOption for a limit that all models of a server have in common."""
    own = {key: value for key, value in settings.values.items() if key == "model" or key not in ours}
    if _OF_THE_SERVER in own:
        raise InvalidOption(
            f"best_of_limit: is one for all models here: start with --max-choices {own[_OF_THE_SERVER]} instead"
        )
    return own | {"name": name}


def _left_out(name: str, reason: str) -> str:
    return f"{name} is no language model and is not served: {reason}"
