"""With `--profile ovms` a model's graph counts, and OpenVINO Model Server's `config.json` names models.

Options of ours, wherever they stand, beat what those files say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.model_settings import settings_of_entry
from ouzel.cli.ovms_config import OvmsConfig, read_ovms_config
from ouzel.cli.ovms_graph import GRAPH_FILE, NotALanguageModel
from ouzel.cli.ovms_meanings import Values
from ouzel.cli.ovms_servable import read_servable
from ouzel.cli.seen_files import SeenFiles


@dataclass(frozen=True, slots=True)
class OvmsFiles:
    """Says where they are."""

    config_path: Path | None = None
    repository_config_path: Path | None = None  # counts where no model is named
    poll_s: float = 1.0


@dataclass(frozen=True, slots=True)
class OvmsModels:
    """Holds what they say."""

    own: Values = field(default_factory=dict)  # of MODEL, by the names of our options
    entries: tuple[Values, ...] = ()  # as those of `models`
    problems: Mapping[str, str] = field(default_factory=dict)  # by the name of a model
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    has_file: bool = False
    seen_files: SeenFiles = field(default_factory=SeenFiles)


def read_ovms_models(files: OvmsFiles, ours: Mapping[str, object]) -> OvmsModels:
    """Raises InvalidOption."""
    is_named = bool(ours.get("model") or ours.get("models"))
    path = files.config_path or (None if is_named else files.repository_config_path)
    own, remarks = _own(ours)
    if path is None:
        return OvmsModels(own=own, remarks=tuple(remarks))
    config = read_ovms_config(path, ours)
    entries = tuple(entry for entry in config.entries if _is_valid(entry, ours, config))
    if not (entries or config.problems or is_named):
        config.problems[""] = "must name a language model"
    return OvmsModels(
        own=own,
        entries=entries,
        problems={name: f"--config_path {path}: {problem}" for name, problem in config.problems.items()},
        warnings=tuple(config.warnings),
        remarks=(*remarks, *config.remarks),
        has_file=True,
        seen_files=SeenFiles(config.stamps, files.poll_s),
    )


def _own(ours: Mapping[str, object]) -> tuple[Values, list[str]]:
    """Returns what the graph of MODEL says, where that is a directory of this machine, and remarks."""
    model = str(ours.get("model", ""))
    directory = Path(model).expanduser()
    if not model or not directory.is_dir():
        return {}, []
    try:
        settings = read_servable(directory)
    except NotALanguageModel as error:
        if (directory / GRAPH_FILE).is_file():
            raise InvalidOption(f"{model} is no language model: {error}") from error
        return {}, []  # what is wrong with it is said where it is looked for
    own = {name: value for name, value in settings.values.items() if name == "model" or name not in ours}
    if own["model"] != model:
        own.setdefault("served_model_name", ours.get("served_model_name") or [directory.resolve().name])
    remarks = [f"{GRAPH_FILE}: OpenVINO Model Server's {name} has no meaning here" for name in settings.without_meaning]
    return own, remarks


def _is_valid(entry: Values, ours: Mapping[str, object], config: OvmsConfig) -> bool:
    try:
        settings_of_entry(entry, ours, str(entry["name"]))
    except InvalidOption as error:
        config.problems[str(entry["name"])] = str(error)
        return False
    return True
