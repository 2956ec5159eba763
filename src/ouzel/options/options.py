"""Flags, environment variables and YAML keys come from the records of `ouzel.config`, where each is written once."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any  # option values are typed by `converted`

from ouzel.config import (
    EngineConfig,
    LimitsConfig,
    MediaConfig,
    ModelConfig,
    ModelsConfig,
    ObservabilityConfig,
    ServerConfig,
    StoreConfig,
    VllmConfig,
)
from ouzel.options.api_keys import with_all_keys
from ouzel.options.checks import check_server_options
from ouzel.options.invalid_option import InvalidOption, InvalidValue
from ouzel.options.model_settings import ModelSettings, all_settings
from ouzel.options.profiles.lmi import read_lmi_settings
from ouzel.options.profiles.ovms_directives import Directive
from ouzel.options.profiles.ovms_models import OvmsFiles, OvmsModels, read_ovms_models
from ouzel.options.records import ENVIRONMENT_PREFIX, RECORDS, converted, options_of
from ouzel.options.seen_files import SeenFiles
from ouzel.terminal.suggestion import did_you_mean

CONFIG_DESCRIPTION = "A YAML file with any of these options as keys; also OUZEL_CONFIG."
_UNREAD_MODELS = (
    "--config {path}: its `models` do not count, as --model or OUZEL_MODELS names others"
)
_OVMS_DEFAULTS = {  # OpenVINO Model Server's
    "allowed_origins": ["*"],
    "lenient_formats": True,
    "strict_max_tokens": True,
}


@dataclass(frozen=True, slots=True)
class Options:
    """Holds all that the user asked for; `model`, `engine` and `vllm` are of the model that is started or asked for."""

    model: ModelConfig
    models: ModelsConfig
    engine: EngineConfig
    vllm: VllmConfig
    given: frozenset[str]  # those of the model that somebody wrote
    limits: LimitsConfig
    media: MediaConfig
    server: ServerConfig
    store: StoreConfig
    observability: ObservabilityConfig
    all_models: tuple[ModelSettings, ...]  # of a server
    values: Mapping[str, Any] = field(
        repr=False
    )  # by option, as they were written: for models that come later
    has_file: bool  # some may be from --config, or models from OVMS's --config_path
    remarks: tuple[str, ...] = ()  # for the log
    warnings: tuple[str, ...] = ()  # for the log, too
    problems: Mapping[str, str] = field(
        default_factory=dict
    )  # by the name of a model that cannot be read
    seen_files: SeenFiles = field(default_factory=SeenFiles)  # that are read again when they change
    directive: Directive | None = None  # runs before a server starts, or instead of it

    def of(self, settings: ModelSettings) -> "Options":
        """Returns those of one of the models."""
        return replace(
            self,
            model=settings.model,
            engine=settings.engine,
            vllm=settings.vllm,
            given=settings.given,
        )


def known_flags() -> list[str]:
    """Returns every flag that may be written, those that switch something off included."""
    options = [
        option for record in RECORDS for option in options_of(record) if option.name != "model"
    ]
    negations = [f"--no-{option.flag[2:]}" for option in options if option.is_flag]
    return ["--config", "--help", *(option.flag for option in options), *negations]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds every option as a flag; the default is absence, so that the environment and the file can speak."""
    parser.add_argument("--config", default=argparse.SUPPRESS)
    for record in RECORDS:
        for option in options_of(record):
            if option.name != "model":  # positional
                action = (
                    argparse.BooleanOptionalAction
                    if option.is_flag
                    else "append"
                    if option.is_list
                    else "store"
                )
                parser.add_argument(
                    option.flag, dest=option.name, default=argparse.SUPPRESS, action=action
                )


def read_options(
    arguments: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    ovms_files: OvmsFiles | None = None,
) -> Options:
    """Merges them: flags over environment over file over the profile's settings over defaults. Raises InvalidOption."""
    flags = {name: value for name, value in arguments.items() if value is not None}
    in_file: dict[str, Any] = {}
    environment = os.environ if environment is None else environment
    config_path = flags.pop("config", None) or environment.get(ENVIRONMENT_PREFIX + "CONFIG")
    if config_path:
        from ouzel.options.file import read_options_file  # noqa: PLC0415  YAML is slow to import, seldom needed

        in_file = read_options_file(Path(config_path))
    in_environment = _read_environment(environment)
    try:
        values = {**in_file, **in_environment, **flags}
        warnings = []
        if "models" in in_file and values["models"] != in_file["models"]:
            warnings.append(_UNREAD_MODELS.format(path=config_path))
        options = _merged(values, environment, ovms_files, has_file=bool(config_path))
        return replace(options, warnings=(*warnings, *options.warnings))
    except InvalidValue as error:
        if error.option in flags:
            raise
        if error.option in in_environment:
            variable = ENVIRONMENT_PREFIX + error.option.upper()
            raise InvalidOption(f"{variable}: {error.complaint}") from error
        if error.option in in_file:
            raise InvalidOption(
                f"--config {config_path}: {error.option}: {error.complaint}"
            ) from error
        raise


def _merged(
    values: dict[str, Any],
    environment: Mapping[str, str],
    ovms_files: OvmsFiles | None,
    *,
    has_file: bool,
) -> Options:
    """Raises InvalidOption."""
    remarks = _remarks_on_variables(environment)
    if values.get("profile") == "lmi":
        lmi_values, lmi_remarks = read_lmi_settings(environment, str(values.get("model", "")))
        values = lmi_values | values
        remarks += lmi_remarks
    ovms = OvmsModels()
    if values.get("profile") == "ovms":
        ovms = read_ovms_models(ovms_files or OvmsFiles(), values)
        values = _OVMS_DEFAULTS | values
        if ovms.entries:
            values |= {"models": [*ovms.entries, *converted(ModelsConfig, values).models]}
    _check_demo(values)
    models = all_settings(values, ovms.own)
    options = Options(
        model=models[0].model,
        models=converted(ModelsConfig, values),
        engine=models[0].engine,
        vllm=models[0].vllm,
        given=models[0].given,
        limits=converted(LimitsConfig, ovms.own | values),
        media=converted(MediaConfig, values),
        server=converted(ServerConfig, values),
        store=converted(StoreConfig, values),
        observability=converted(ObservabilityConfig, values),
        all_models=models,
        values=values,
        has_file=has_file or ovms.has_file,
        warnings=tuple(ovms.warnings),
        problems=ovms.problems,
        seen_files=ovms.seen_files,
    )
    check_server_options(options.limits, options.media, options.server, options.observability)
    return replace(
        options,
        server=with_all_keys(options.server, environment),
        remarks=(*remarks, *ovms.remarks),
    )


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for record in RECORDS:
        for option in options_of(record):
            text = environment.get(option.variable, "").strip()
            if text:  # an empty variable is an absent one, as in compose files
                values[option.name] = (
                    [part.strip() for part in text.split(",")] if option.is_list else text
                )
    return values


def _remarks_on_variables(environment: Mapping[str, str]) -> list[str]:
    """Names variables that are nearly an option's; others may be a program's, as Kubernetes' OUZEL_SERVICE_HOST."""
    known = {option.variable for record in RECORDS for option in options_of(record)} | {
        ENVIRONMENT_PREFIX + "CONFIG"
    }
    strangers = [
        name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known
    ]
    suggestions = {name: did_you_mean([name], known, likeness=0.9) for name in strangers}
    return [
        f"{name} is not read{suggestion}" for name, suggestion in suggestions.items() if suggestion
    ]


def _check_demo(values: dict[str, Any]) -> None:
    if values.get("model") and "demo" in values:
        raise InvalidOption(
            f"--demo: needs that no model is named, given the model {values['model']!r}"
        )
