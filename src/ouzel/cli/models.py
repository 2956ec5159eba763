"""`ouzel models` lists the catalogue: short names of well-known models, and their sizes."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import get_args

from ouzel.machine.quantities import format_count, format_size
from ouzel.model_store.catalogue.entry import Entry, Use
from ouzel.model_store.catalogue.fitting import Fit, MemoryRoom, judge_fit, measure_memory
from ouzel.model_store.catalogue.reader import read_catalogue
from ouzel.model_store.catalogue.remote_file import hide_credentials
from ouzel.model_store.catalogue.sizes import (
    CONTEXT_TOKENS,
    WIDTHS,
    Width,
    compute_download_bytes,
    compute_memory_bytes,
    compute_weight_bytes,
)
from ouzel.model_store.catalogue.whereabouts import find_on_disk
from ouzel.observability.progress_bar import amount
from ouzel.options.options import read_options
from ouzel.options.store_options import add_catalogue_option, store_parser
from ouzel.serve.command import apply_logging
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.table import table

_DESCRIPTION = """\
Lists the short names of well-known models, which every command takes as MODEL, with their sizes."""
_GATED = " (to accept on the hub)"


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One row of the table; sizes in bytes are keyed by width."""

    name: str
    uses: tuple[str, ...]
    repository: str
    revision: str
    format: str
    file: str
    packages: tuple[str, ...]
    licence: str
    gated: bool
    num_parameters: int
    context: int
    serve_options: str
    download_bytes: int
    weight_bytes: dict[Width, int]  # also the size of the compressed weights on the disk
    memory_bytes: dict[Width, int]  # a server with a KV cache for CONTEXT_TOKENS tokens
    fits: dict[Width, Fit]
    path: str  # the model on this disk; empty before the download


def models_parser() -> OneLineParser:
    parser = store_parser("models", _DESCRIPTION)
    add_catalogue_option(parser)
    parser.add_argument(
        "--use", choices=get_args(Use), help="list only the models for this use", default=""
    )
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object, with sizes in bytes"
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    """Prints the table or the JSON document, and returns the exit status. Raises OuzelError."""
    values = vars(models_parser().parse_args(arguments))
    is_json, use = values.pop("json"), values.pop("use")
    options = apply_logging(read_options(values | {"log_level": "error"}))
    entries = read_catalogue(options.model.catalogue).values()
    room = measure_memory()
    models = [
        _describe(entry, room, options.model.cache_dir)
        for entry in entries
        if not use or use in entry.uses
    ]
    if is_json:
        document = {
            "catalogue": hide_credentials(options.model.catalogue),
            "context_tokens": CONTEXT_TOKENS,
            "memory": asdict(room),
            "models": [asdict(each) for each in models],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write(_table_text(models, room))
    return 0


def _describe(entry: Entry, room: MemoryRoom, cache_dir: str) -> CatalogueModel:
    memory = {width: compute_memory_bytes(entry, width) for width in WIDTHS}
    return CatalogueModel(
        name=entry.name,
        uses=entry.uses,
        repository=entry.repository,
        revision=entry.revision,
        format=entry.format,
        file=entry.file,
        packages=entry.packages.requirements if entry.packages else (),
        licence=entry.licence,
        gated=entry.gated,
        num_parameters=entry.parameters,
        context=entry.context,
        serve_options=entry.serve_options,
        download_bytes=compute_download_bytes(entry),
        weight_bytes={width: compute_weight_bytes(entry.shape, width) for width in WIDTHS},
        memory_bytes=memory,
        fits={width: judge_fit(needed, room) for width, needed in memory.items()},
        path=str(find_on_disk(entry, cache_dir) or ""),
    )


def _table_text(models: Sequence[CatalogueModel], room: MemoryRoom) -> str:
    rows = [
        [
            each.name,
            ", ".join(each.uses),
            format_count(each.num_parameters),
            amount(each.download_bytes),
            *(amount(each.weight_bytes[width]) for width in WIDTHS),
            _fits(each),
            "yes" if each.path else "",
            each.licence + (_GATED if each.gated else ""),
        ]
        for each in models
    ]
    sizes = [width.upper() for width in WIDTHS]
    heads = ["MODEL", "USE", "PARAMETERS", "DOWNLOAD", *sizes, "FITS", "HERE", "LICENCE"]
    text = table(heads, rows, right=["PARAMETERS", "DOWNLOAD", *sizes])
    return (
        f"{text}\n"
        f"BF16, INT8 and INT4 are the weights in memory with this --weights (auto is int8), and as "
        f"much\non the disk beside the download. FITS names the widest weights that fit "
        f"{format_size(room.limit_bytes)} of memory with\n{CONTEXT_TOKENS} tokens of context. "
        f"To chat: ouzel run MODEL\n"
    )


def _fits(model: CatalogueModel) -> str:
    """Returns the widest weights that fit the memory, preferably the memory that is free."""
    for fit in (Fit.YES, Fit.IF_FREED):
        for width in WIDTHS:
            if model.fits[width] is fit:
                return width if fit is Fit.YES else f"{width} {Fit.IF_FREED}"
    return "no"
