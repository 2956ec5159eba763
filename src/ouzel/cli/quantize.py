"""`ouzel quantize` writes a four-bit checkpoint that Ouzel and others load."""

import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import LocalModel, is_ir, locate_model
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
Writes a model as a checkpoint of compressed-tensors with 4 to 4.6 bits a weight in most matrices. The model first
reads a text, by which its weights are encoded. Ouzel serves the checkpoint as it is, and transformers loads it, too."""

_COPIED_SUFFIXES = {".json", ".jinja", ".model", ".txt", ".tiktoken"}
_NOT_COPIED = {
    "config.json",
    "made_of.json",
    "quantize_config.json",
}  # made here, or of weights that stay behind


def quantize_parser() -> OneLineParser:
    parser = store_parser("quantize", _DESCRIPTION)
    parser.add_argument(
        "source", metavar="SRC", help="a directory, a GGUF file, or owner/name of the hub"
    )
    parser.add_argument(
        "output", metavar="OUT", help="the directory to make; it must not hold anything yet"
    )
    add_text_option(parser)
    add_log_options(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Raises OuzelError."""
    values = vars(quantize_parser().parse_args(arguments))
    source, output, text_path = (
        values.pop(name) for name in ("source", "output", "calibration_text")
    )
    if not source or not output:
        raise InvalidOption("SRC and OUT must name a model and a directory")
    out = _output_directory(output)
    options = apply_logging(read_options(values | {"model": source}))
    local = locate_model(source, options.model.cache_dir)
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
    """Raises InvalidOption for a path that a finished directory cannot be moved to."""
    try:
        out = Path(output).expanduser().resolve()
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InvalidOption(f"OUT must be a new or an empty directory, given {output}")
    except (
        OSError,
        RuntimeError,
    ) as error:  # no access, a name too long, a circle of links, ~ of nobody
        raise InvalidOption(f"OUT: {output} cannot be used: {error}") from error
    if out.is_mount():
        raise InvalidOption(
            f"OUT must not be a mount point; name a directory below it, given {output}"
        )
    return out


def _quantize(local: LocalModel, out: Path, text_path: str) -> "Export":
    """Puts the finished checkpoint in place at once. Raises OuzelError and OSError."""
    from ouzel.backends.openvino.calibration.export import export_checkpoint  # noqa: PLC0415  slow to import
    from ouzel.checkpoint.hf_config import read_hf_config  # noqa: PLC0415
    from ouzel.cli.calibration_text import check_generates, read_calibration_text  # noqa: PLC0415

    if is_ir(local.directory):
        raise ModelLoadError(
            f"{local.name} is an OpenVINO IR; SRC must be the checkpoint that it was made of"
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
        made.rename(out)  # which replaces an empty directory
    return export


def _is_left_out(name: str) -> bool:
    return name in _NOT_COPIED or name.endswith(".index.json")


def _warn_of_second_rounding(local: LocalModel, config: "HfConfig") -> None:
    from ouzel.backends.openvino.weights.stored import find_weights  # noqa: PLC0415  see above

    if form := find_weights(local.directory, config.text_model()).compressed_as:
        logger.warning(
            "%s has quantised weights (%s), which are rounded a second time; a checkpoint in bf16 or f16 loses less",
            local.name,
            form,
        )


def _matrices(export: "Export") -> str:
    """Returns how many matrices have which width."""
    num_int4, num_int8, num_floats = (
        len(export.modules[4]),
        len(export.modules[8]),
        len(export.ignored),
    )
    counts = f"{num_int4} matrices in int4, {num_int8} in int8, {num_floats} in floats"
    return f"{counts}, {export.bits_per_weight:.2f} bits a quantised weight"
