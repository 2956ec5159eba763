"""Reads the options of each model: the options of the server, and values of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # `converted` checks the values

from ouzel.config import EngineConfig, ModelConfig, VllmConfig
from ouzel.options.checks import check_model_options
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.records import converted, list_options
from ouzel.terminal.suggestion import did_you_mean

LEAVES_OUT_IR_DRAFT = "leaves_out_ir_draft"  # a wish of OVMS's profile, and no option of Ouzel
_NAME = "name"
# A model of `--model` has its name from `name`, and the demo is never beside other models.
_NOT_ITS_OWN = ("served_model_name", "demo")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    model: ModelConfig
    engine: EngineConfig
    vllm: VllmConfig
    given: frozenset[str]  # the options that the user wrote
    # A draft that is an OpenVINO IR is left out with a warning, and does not end the start.
    leaves_out_ir_draft: bool = False


def all_settings(values: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[ModelSettings, ...]:
    """Returns the settings of MODEL and of each `--model`; without any, of the demo model.

    With `--models-dir` there may be none.

    `own` holds values for MODEL alone. Raises InvalidOption.
    """
    entries: Sequence[object] = values.get("models", ())
    is_named = values.get("model") or not (entries or values.get("models_dir"))
    first = [read_model_settings({**values, **own})] if is_named else []
    if entries and not first and values.get("served_model_name"):
        raise InvalidOption(
            "--served-model-name: needs MODEL; a model of --model has a name of its own"
        )
    further = [
        read_model_entry(entry, values, f"--model {number}")
        for number, entry in enumerate(entries, 1)
    ]
    names = [name for settings in further for name in settings.model.served_model_name]
    check_names(names)
    return (*first, *further)


def check_names(names: Sequence[str]) -> None:
    """Raises InvalidOption if two models have the same name."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidOption(f"--model: each must have a name of its own, given {twice[0]!r} twice")


def read_model_settings(values: Mapping[str, Any]) -> ModelSettings:
    """Reads and checks the options of one model. Raises InvalidOption."""
    model, engine = converted(ModelConfig, values), converted(EngineConfig, values)
    vllm = converted(VllmConfig, values)
    given = frozenset(values).intersection(_own_options())
    check_model_options(model, engine, vllm, given)
    leaves_out = bool(values.get(LEAVES_OUT_IR_DRAFT))
    return ModelSettings(model, engine, vllm, given, leaves_out_ir_draft=leaves_out)


def read_model_entry(entry: object, values: Mapping[str, Any], origin: str) -> ModelSettings:
    """Reads an entry of `models`: NAME=MODEL, or a mapping. Other options are as in `values`.

    Raises InvalidOption, which begins with `origin`.
    """
    fields = entry_fields(entry, origin)
    _check_keys(fields, origin)
    own = {key: value for key, value in fields.items() if key != _NAME}
    common = {key: value for key, value in values.items() if key not in _NOT_ITS_OWN}
    try:
        return read_model_settings(common | own | {"served_model_name": [fields[_NAME]]})
    except InvalidOption as error:
        raise InvalidOption(f"{origin}: {error}") from error


def entry_fields(entry: object, origin: str = "the model") -> Mapping[str, Any]:
    """Returns an entry of `models` as a mapping. Raises InvalidOption for any other value."""
    if isinstance(entry, str):
        name, equals, model = entry.partition("=")
        if not (name and equals and model):
            raise InvalidOption(f"{origin}: must be NAME=MODEL, given {entry!r}")
        return {_NAME: name, "model": model}
    if not isinstance(entry, Mapping):
        raise InvalidOption(f"{origin}: must be NAME=MODEL or a mapping, given {entry!r}")
    return entry


def _check_keys(entry: Mapping[str, Any], origin: str) -> None:
    for key in (_NAME, "model"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise InvalidOption(f"{origin}: must have a text {key!r}, given {entry.get(key)!r}")
    if not entry[_NAME].isprintable():
        raise InvalidOption(f"{origin}: name: must be printable, given {entry[_NAME][:100]!r}")
    known = _own_options() - {*_NOT_ITS_OWN} | {_NAME}
    unknown = sorted(set(map(str, entry)) - known)
    if unknown:
        raise InvalidOption(
            f"{origin}: a model has no option {', '.join(unknown)}{did_you_mean(unknown, known)}"
        )


def _own_options() -> set[str]:
    """Returns the names of the options that each model may have for itself."""
    return {
        option.name
        for record in (ModelConfig, EngineConfig, VllmConfig)
        for option in list_options(record)
    }
