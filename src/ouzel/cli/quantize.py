"""`ouzel quantize` writes a four-bit checkpoint that Ouzel and others load."""

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.model_directory import LocalModel, locate_model
from ouzel.cli.one_line_parser import OneLineParser
from ouzel.cli.options import read_options
from ouzel.cli.progress import progress_shown
from ouzel.cli.serve_command import begun
from ouzel.cli.store_options import add_log_options, add_text_option, store_parser
from ouzel.errors import ModelLoadError
from ouzel.observability.progress_bar import amount

_DESCRIPTION = """\
Writes a model as a checkpoint of compressed-tensors with four bits a weight, encoded by what the model computes of a
text. Ouzel keeps its weights exactly; transformers and vLLM load it, too."""

_COPIED_SUFFIXES = {".json", ".jinja", ".model", ".txt", ".tiktoken"}
_MADE_HERE = {"config.json", "model.safetensors.index.json", "made_of.json"}


def quantize_parser() -> OneLineParser:
    parser = store_parser("quantize", _DESCRIPTION)
    parser.add_argument("source", metavar="SRC", help="a directory, a GGUF file, or owner/name of the hub")
    parser.add_argument("output", metavar="OUT", help="the directory to make; it must not hold anything yet")
    add_text_option(parser)
    add_log_options(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Raises OuzelError."""
    values = vars(quantize_parser().parse_args(arguments))
    source, output, text_path = (values.pop(name) for name in ("source", "output", "calibration_text"))
    if not source or not output:
        raise InvalidOption("SRC and OUT must name a model and a directory")
    out = Path(output)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidOption(f"OUT must be a new or an empty directory, given {output}")
    options = begun(read_options(values | {"model": source}))
    local = locate_model(source, options.model.cache_dir)
    begun_at = time.monotonic()
    try:
        with progress_shown():
            bits = _quantize(local, out, text_path)
    except OSError as error:
        raise ModelLoadError(f"{output} cannot be written: {error}") from error
    size = sum(path.stat().st_size for path in out.iterdir())
    took_s = time.monotonic() - begun_at
    sys.stdout.write(f"{out}: {amount(size)}, {bits:.2f} bits a quantised weight, made in {took_s:.0f} s\n")
    sys.stdout.write(f"to serve it: ouzel serve {out}\n")
    return 0


def _quantize(local: LocalModel, out: Path, text_path: str) -> float:
    """Puts the finished checkpoint in place at once; returns the bits of a quantised weight."""
    from ouzel.backends.openvino.calibration.export import export_checkpoint  # noqa: PLC0415  slow to import
    from ouzel.backends.openvino.hf_config import read_hf_config  # noqa: PLC0415
    from ouzel.cli.calibration_text import calibration_chunks  # noqa: PLC0415

    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=out.absolute().parent) as unfinished:
        made = Path(unfinished, "made")
        made.mkdir()
        chunks = calibration_chunks(local.directory, text_path)
        export = export_checkpoint(local.directory, read_hf_config(local.directory), made, chunks)
        for path in sorted(local.directory.iterdir()):
            if path.suffix in _COPIED_SUFFIXES and path.name not in _MADE_HERE and path.is_file():
                shutil.copyfile(path, made / path.name)
        made.rename(out)  # which replaces an empty directory
    return export.bits_per_weight
