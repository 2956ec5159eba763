"""Applies graphs and `config.json` of OpenVINO Model Server to the models of `--profile ovms`.

Ouzel's own options, from any source, beat these files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.model_settings import read_model_entry
from ouzel.options.profiles.ovms_config import OvmsConfig, read_ovms_config
from ouzel.options.profiles.ovms_graph import GRAPH_FILE, NotALanguageModel
from ouzel.options.profiles.ovms_meanings import Values
from ouzel.options.profiles.ovms_servable import read_servable
from ouzel.options.seen_files import SeenFiles


@dataclass(frozen=True, slots=True)
class OvmsFiles:
    """Names the configuration files of OVMS."""

    config_path: Path | None = None
    repository_config_path: Path | None = None  # used if the options name no model
    poll_s: float = 1.0


@dataclass(frozen=True, slots=True)
class OvmsModels:
    """The models in OVMS's configuration file and graphs, with the lines that the log gets."""

    own: Values = field(default_factory=dict)  # values for MODEL by the names of Ouzel's options
    entries: tuple[Values, ...] = ()  # entries in the form of `models`
    common: Values = field(default_factory=dict)  # values for all models
    problems: Mapping[str, str] = field(default_factory=dict)  # errors by the name of the model
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    has_file: bool = False
    seen_files: SeenFiles = field(default_factory=SeenFiles)


def read_ovms_models(files: OvmsFiles, ours: Mapping[str, object]) -> OvmsModels:
    """Reads the models of the configuration file, and the graph of MODEL. Raises InvalidOption."""
    is_named = bool(ours.get("model") or ours.get("models"))
    path = files.config_path or (None if is_named else files.repository_config_path)
    of_model = _read_own(ours)
    if path is None:
        return of_model
    config = read_ovms_config(path, ours)
    entries = tuple(entry for entry in config.entries if _is_valid(entry, ours, config))
    if not (entries or config.problems or is_named):
        config.problems[""] = "must name a model for chats, embeddings or ranking"
    return OvmsModels(
        own=of_model.own,
        entries=entries,
        common={"load_on_request": True, "one_group": True} if config.idle_unload_s else {},
        problems={
            name: f"--config_path {path}: {problem}" for name, problem in config.problems.items()
        },
        warnings=(*of_model.warnings, *config.warnings),
        remarks=(*of_model.remarks, *config.remarks),
        has_file=True,
        seen_files=SeenFiles(config.stamps, files.poll_s),
    )


def _read_own(ours: Mapping[str, object]) -> OvmsModels:
    """Reads the graph of MODEL if MODEL is a local directory. Raises InvalidOption."""
    model = str(ours.get("model", ""))
    directory = Path(model).expanduser()
    try:
        if not model or not directory.is_dir():
            return OvmsModels()
        settings = read_servable(directory)
    except OSError:
        return OvmsModels()  # `locate_model` reports the error
    except NotALanguageModel as error:
        if (directory / GRAPH_FILE).is_file():
            raise InvalidOption(f"{model} cannot be served: {error}") from error
        return OvmsModels()  # `locate_model` reports the error
    own = {
        name: value
        for name, value in settings.values.items()
        if name == "model" or name not in ours
    }
    if own["model"] != model:
        own.setdefault(
            "served_model_name", ours.get("served_model_name") or [directory.resolve().name]
        )
    remarks = [
        f"{GRAPH_FILE}: OpenVINO Model Server's {name} has no meaning here"
        for name in settings.without_meaning
    ]
    warnings = [f"{GRAPH_FILE}: {warning}" for warning in settings.warnings]
    return OvmsModels(own=own, remarks=tuple(remarks), warnings=tuple(warnings))


def _is_valid(entry: Values, ours: Mapping[str, object], config: OvmsConfig) -> bool:
    try:
        read_model_entry(entry, ours, str(entry["name"]))
    except InvalidOption as error:
        config.problems[str(entry["name"])] = str(error)
        return False
    return True
