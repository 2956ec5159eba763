"""Merges flags, environment variables and the options file into one record, `Options`."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any  # `converted` checks the values

from ouzel.config import (
    AudioConfig,
    EngineConfig,
    HostedToolsConfig,
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
from ouzel.options.checks import check_models_options, check_server_options
from ouzel.options.invalid_option import InvalidOption, InvalidValue
from ouzel.options.model_settings import (
    LEAVES_OUT_IR_DRAFT,
    ModelSettings,
    all_settings,
    read_model_settings,
)
from ouzel.options.profiles.lmi import read_lmi_settings
from ouzel.options.profiles.ovms_directives import Directive
from ouzel.options.profiles.ovms_models import OvmsFiles, OvmsModels, read_ovms_models
from ouzel.options.records import ENVIRONMENT_PREFIX, RECORDS, converted, list_options
from ouzel.options.seen_files import SeenFiles
from ouzel.terminal.suggestion import did_you_mean

CONFIG_DESCRIPTION = "A YAML file of options; also OUZEL_CONFIG."
# flag -> the option that it sets, and the value
SHORT_FORMS = {"--no-mmproj": ("mmproj", "none")}
_UNREAD_MODELS = (
    "--config {path}: its `models` are ignored, since --model or OUZEL_MODELS names models"
)
_OVMS_DEFAULTS = {  # defaults of OpenVINO Model Server
    "allowed_origins": ["*"],
    "lenient_formats": True,
    "strict_max_tokens": True,
}


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a command line.

    `model`, `engine` and `vllm` are the options of one model: the first one, or the model for which
    `of` was called.
    """

    model: ModelConfig
    models: ModelsConfig
    engine: EngineConfig
    vllm: VllmConfig
    given: frozenset[str]  # options of the model that the user wrote
    limits: LimitsConfig
    media: MediaConfig
    audio: AudioConfig
    server: ServerConfig
    store: StoreConfig
    hosted_tools: HostedToolsConfig
    observability: ObservabilityConfig
    all_models: tuple[ModelSettings, ...]  # every model of a server
    # Values as the user wrote them; models that are loaded later start from them.
    values: Mapping[str, Any] = field(repr=False)
    has_file: bool  # --config, or --config_path of OVMS, named a file
    remarks: tuple[str, ...] = ()  # log lines of level info
    warnings: tuple[str, ...] = ()  # log lines of level warning
    # Errors by the name of the model that could not be read from a file.
    problems: Mapping[str, str] = field(default_factory=dict)
    seen_files: SeenFiles = field(default_factory=SeenFiles)  # files to read again when they change
    directive: Directive | None = None  # an action before a server starts, or instead of it

    @property
    def first(self) -> ModelSettings:
        """Returns the first model of the options; the demo model if `--models-dir` has all."""
        leaves_out = bool(self.values.get(LEAVES_OUT_IR_DRAFT))
        return ModelSettings(
            self.model, self.engine, self.vllm, self.given, leaves_out_ir_draft=leaves_out
        )

    @property
    def loads_on_request(self) -> bool:
        """Tells whether models come and go."""
        models = self.models
        if models.load_on_request is not None:
            return models.load_on_request
        return bool(
            models.models_dir
            or models.max_loaded_models
            or models.models_memory_gib
            or models.one_group
            or any(
                each.model.idle_unload_s is not None and each.model.idle_unload_s >= 0
                for each in self.all_models
            )
        )

    def of(self, settings: ModelSettings) -> "Options":
        """Returns the options with one of the models in `model`, `engine` and `vllm`."""
        return replace(
            self,
            model=settings.model,
            engine=settings.engine,
            vllm=settings.vllm,
            given=settings.given,
        )


def known_flags() -> list[str]:
    """Returns every flag, with `--no-` forms of options that are on or off."""
    options = [
        option for record in RECORDS for option in list_options(record) if option.name != "model"
    ]
    negations = [f"--no-{option.flag[2:]}" for option in options if option.is_flag]
    flags = [option.flag for option in options]
    return ["--config", "--help", *flags, *negations, *SHORT_FORMS]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds every option as a flag without a default: environment and file may set it too."""
    parser.add_argument("--config", default=argparse.SUPPRESS)
    for record in RECORDS:
        for option in list_options(record):
            if option.name != "model":  # MODEL is no flag
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
    for flag, (name, value) in SHORT_FORMS.items():
        parser.add_argument(
            flag, dest=name, default=argparse.SUPPRESS, action="store_const", const=value
        )


def read_options(
    arguments: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    ovms_files: OvmsFiles | None = None,
) -> Options:
    """Merges the options of all sources and checks them.

    Flags beat the environment, which beats the options file, which beats the settings of a profile,
    which beat the defaults. Raises InvalidOption.
    """
    flags = {name: value for name, value in arguments.items() if value is not None}
    in_file: dict[str, Any] = {}
    environment = os.environ if environment is None else environment
    config_path = flags.pop("config", None) or environment.get(ENVIRONMENT_PREFIX + "CONFIG")
    if config_path:
        # YAML is slow to import and rarely needed.
        from ouzel.options.file import read_options_file  # noqa: PLC0415

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
    """Applies the profile, converts the values to records and checks them."""
    remarks = _remarks_on_variables(environment)
    if values.get("profile") == "lmi":
        lmi_values, lmi_remarks = read_lmi_settings(environment, str(values.get("model", "")))
        values = lmi_values | values
        remarks += lmi_remarks
    ovms = OvmsModels()
    if values.get("profile") == "ovms":
        ovms = read_ovms_models(ovms_files or OvmsFiles(), values)
        values = _OVMS_DEFAULTS | dict(ovms.common) | values
        if ovms.entries:
            values |= {"models": [*ovms.entries, *converted(ModelsConfig, values).models]}
    _check_demo(values)
    models = all_settings(values, ovms.own)
    first = models[0] if models else read_model_settings(values)
    options = Options(
        model=first.model,
        models=converted(ModelsConfig, values),
        engine=first.engine,
        vllm=first.vllm,
        given=first.given,
        limits=converted(LimitsConfig, ovms.own | values),
        media=converted(MediaConfig, values),
        audio=converted(AudioConfig, values),
        server=converted(ServerConfig, values),
        store=converted(StoreConfig, values),
        hosted_tools=converted(HostedToolsConfig, values),
        observability=converted(ObservabilityConfig, values),
        all_models=models,
        values=values,
        has_file=has_file or ovms.has_file,
        warnings=tuple(ovms.warnings),
        problems=ovms.problems,
        seen_files=ovms.seen_files,
    )
    check_models_options(options.models, loads_on_request=options.loads_on_request)
    check_server_options(options.limits, options.media, options.server, options.observability)
    return replace(
        options,
        server=with_all_keys(options.server, environment),
        remarks=(*remarks, *ovms.remarks),
    )


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for record in RECORDS:
        for option in list_options(record):
            text = environment.get(option.variable, "").strip()
            if text:  # an empty variable counts as unset, as in compose files
                values[option.name] = (
                    [part.strip() for part in text.split(",")] if option.is_list else text
                )
    return values


def _remarks_on_variables(environment: Mapping[str, str]) -> list[str]:
    """Returns a log line for each variable that is nearly an option's, with the option's name.

    Other variables may belong to another program, as OUZEL_SERVICE_HOST to Kubernetes.
    """
    known = {option.variable for record in RECORDS for option in list_options(record)} | {
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
            f"--demo: cannot be used with MODEL, given the model {values['model']!r}"
        )
