"""`ouzel quantize` writes a four-bit checkpoint that Ouzel and other programs load."""

import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import LocalModel, is_ir, locate_text_model
from ouzel.observability.progress_bar import amount
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import read_options
from ouzel.options.store_options import add_log_options, add_text_option, store_parser
from ouzel.serve.command import apply_logging
from ouzel.terminal.clean_end import clean_end
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.progress import progress_shown

if TYPE_CHECKING:
    from ouzel.backends.openvino.calibration.export import Export
    from ouzel.checkpoint.hf_config import HfConfig

logger = logging.getLogger(__name__)

_DESCRIPTION = """\
Writes a model as a compressed-tensors checkpoint with 4 to 4.6 bits a weight in most matrices.
The model reads a text first, and its weights are encoded by the inputs of that text. Ouzel serves
the checkpoint as it is; transformers loads it too."""

_COPIED_SUFFIXES = {".json", ".jinja", ".model", ".txt", ".tiktoken"}
# The command writes the first file itself; the other two describe the weights of the source.
_NOT_COPIED = {"config.json", "made_of.json", "quantize_config.json"}


def quantize_parser() -> OneLineParser:
    parser = store_parser("quantize", _DESCRIPTION)
    parser.add_argument(
        "source", metavar="SRC", help="a directory, a GGUF file, or owner/name of the hub"
    )
    parser.add_argument(
        "output", metavar="OUT", help="the directory to write; it must be new or empty"
    )
    add_text_option(parser)
    add_log_options(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Quantizes the model and returns the exit status. Raises OuzelError."""
    values = vars(quantize_parser().parse_args(arguments))
    source, output = values.pop("source"), values.pop("output")
    text_path = values.pop("calibration_text")
    if not source or not output:
        raise InvalidOption("SRC and OUT must name a model and a directory")
    out = _output_directory(output)
    options = apply_logging(read_options(values | {"model": source}))
    local = locate_text_model(source, options.model.cache_dir)
    begun_at = time.monotonic()
    try:
        with progress_shown(), clean_end():
            export = _quantize(local, out, text_path)
    except OSError as error:
        raise ModelLoadError(f"{output} was not written: {error}") from error
    num_bytes = sum(path.stat().st_size for path in out.iterdir())
    took_s = time.monotonic() - begun_at
    sys.stdout.write(
        f"{output}: {amount(num_bytes)}, {_matrices(export)}, made in {took_s:.0f} s\n"
    )
    sys.stdout.write(f"to serve it: ouzel serve {output}\n")
    return 0


def _output_directory(output: str) -> Path:
    """Returns the path of OUT. Raises InvalidOption if a directory cannot be moved there."""
    try:
        out = Path(output).expanduser().resolve()
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InvalidOption(f"OUT must be a new or an empty directory, given {output}")
    # No access, a name that is too long, a loop of links, or `~` of an unknown user.
    except (OSError, RuntimeError) as error:
        raise InvalidOption(f"OUT: {output} cannot be used: {error}") from error
    if out.is_mount():
        raise InvalidOption(
            f"OUT must not be a mount point; name a directory below it, given {output}"
        )
    return out


def _quantize(local: LocalModel, out: Path, text_path: str) -> "Export":
    """Writes the checkpoint beside OUT and moves it there when it is complete.

    Raises OuzelError and OSError.
    """
    # The import is slow.
    from ouzel.backends.openvino.calibration.export import export_checkpoint  # noqa: PLC0415
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415
    from ouzel.cli.calibration_text import check_generates, read_calibration_text  # noqa: PLC0415

    if is_ir(local.directory):
        raise ModelLoadError(
            f"{local.name} is an OpenVINO IR; SRC must be the checkpoint from which it was exported"
        )
    config = read_hf_config(local.directory)
    check_generates(local, config)
    _warn_of_second_rounding(local, config)
    text = read_calibration_text(local.directory, text_path)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=out.parent) as unfinished:
        made = Path(unfinished, "made")
        made.mkdir()
        export = export_checkpoint(local.directory, config, made, text)
        for path in sorted(local.directory.iterdir()):
            if path.suffix in _COPIED_SUFFIXES and path.is_file() and not _is_left_out(path.name):
                shutil.copyfile(path, made / path.name)
        made.rename(out)  # rename replaces an empty directory
    return export


def _is_left_out(name: str) -> bool:
    return name in _NOT_COPIED or name.endswith(".index.json")


def _warn_of_second_rounding(local: LocalModel, config: "HfConfig") -> None:
    from ouzel.backends.openvino.weights.stored import find_weights  # noqa: PLC0415  slow to import

    if form := find_weights(local.directory, config.text_model()).compressed_as:
        logger.warning(
            "%s has quantised weights (%s), which are rounded a second time; a checkpoint in bf16 "
            "or f16 loses less quality",
            local.name,
            form,
        )


def _matrices(export: "Export") -> str:
    """Returns the numbers of matrices in each width."""
    modules = export.modules
    counts = f"{len(modules[4])} matrices in int4, {len(modules[8])} in int8"
    counts += f", {len(export.ignored)} in floats"
    return f"{counts}, {export.bits_per_weight:.2f} bits a quantised weight"
