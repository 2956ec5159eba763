"""`ouzel list` lists the models on this disk, whether serve supports them, and stored files."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ouzel.config.cache_root import cache_root
from ouzel.gguf.files import holds_gguf, is_gguf, model_name, read_quantisation
from ouzel.machine.quantities import format_count
from ouzel.model_store.disk import size_behind
from ouzel.model_store.hub_cache import HubRepository, Snapshot, cache_directory, gguf_models
from ouzel.model_store.inventory import Inventory
from ouzel.model_store.inventory_reader import read_inventory
from ouzel.model_store.verdict import Verdict, judge, judge_gguf
from ouzel.observability.progress_bar import amount
from ouzel.options.options import read_options
from ouzel.options.store_options import store_parser
from ouzel.serve.command import apply_logging
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.table import table

_KINDS = {
    "gguf": "of GGUF",
    "whisper": "of Whisper",
    "kokoro": "of Kokoro",
    "verdict": "KV cache",
    "unfinished": "unfinished",
}
_DESCRIPTION = (
    "Lists the models in the Hugging Face cache, and the files that Ouzel made of models."
)
_MAX_REASON = 90  # characters in the table; --json and `ouzel inspect` show the whole reason
_DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the table of models."""

    name: str  # the MODEL argument of `ouzel serve`
    revision: str
    size_bytes: int
    incomplete_bytes: int
    model_type: str
    num_parameters: int
    last_used: float
    is_served: bool
    reason: str  # why the model is not served


@dataclass(frozen=True, slots=True)
class KeptModel:
    """One row of the table of stored files."""

    id: str
    kind: str
    width: str
    model: str
    path: str
    size_bytes: int
    last_used: float
    is_in_use: bool
    stale: str


def list_parser() -> OneLineParser:
    parser = store_parser("list", _DESCRIPTION)
    parser.add_argument(
        "--json",
        action="store_true",
        help="write one JSON object, with sizes in bytes and times in s since 1970",
    )
    parser.set_defaults(json=False)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Prints the tables or the JSON document, and returns the exit status. Raises OuzelError."""
    values = vars(list_parser().parse_args(arguments))
    is_json = values.pop("json")
    options = apply_logging(read_options(values | {"log_level": "error"}))
    inventory, root = read_inventory(options.model.cache_dir), cache_root(options.model.cache_dir)
    models = [*list_models(inventory), *list_pulled(inventory), *list_demos(inventory)]
    kept = [
        KeptModel(
            each.short_id,
            each.kind,
            each.width,
            inventory.name_model(each),
            str(each.path),
            each.size_bytes,
            each.last_used,
            each.is_in_use,
            each.stale,
        )
        for each in inventory.kept
        if each.kind != "pulled"
    ]
    if is_json:
        content = {"hub_cache": str(cache_directory()), "cache_dir": str(root)}
        document = content | {
            "models": [asdict(each) for each in models],
            "kept": [asdict(each) for each in kept],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.write(_models_text(models, inventory) + "\n" + _kept_text(kept, str(root)))
    return 0


def list_models(inventory: Inventory) -> Iterator[Model]:
    for repository in inventory.repositories:
        if not repository.snapshots:
            reason = "its download is not complete; `ouzel pull` continues it"
            yield _model(
                repository, repository.repo_id, "", repository.size_bytes, Verdict("", 0, reason)
            )
        for snapshot in repository.snapshots:
            yield from _list_snapshot(repository, snapshot)


def _list_snapshot(repository: HubRepository, snapshot: Snapshot) -> Iterator[Model]:
    ggufs = gguf_models(snapshot.directory)
    own = judge(snapshot.directory)
    if own.is_served or not ggufs:
        size = size_behind(snapshot.directory)
        yield _model(repository, repository.repo_id, snapshot.revision, size, own)
        return
    for name, path in ggufs.items():
        quantisation = read_quantisation(name)
        label = (
            f"{repository.repo_id}:{quantisation}"
            if quantisation
            else f"{repository.repo_id} ({name})"
        )
        files = _find_files(name, snapshot.directory)
        size = sum(each.stat().st_size for each in files)
        yield _model(repository, label, snapshot.revision, size, judge_gguf(path))


def _find_files(name: str, directory: Path) -> Iterator[Path]:
    """Yields the files of a GGUF model; links whose target is missing are left out."""
    return (
        path
        for path in directory.rglob("*")
        if is_gguf(path) and model_name(path) == name and path.is_file()
    )


def _model(
    repository: HubRepository, name: str, revision: str, size_bytes: int, verdict: Verdict
) -> Model:
    return Model(
        name=name,
        revision=revision,
        size_bytes=size_bytes,
        incomplete_bytes=repository.incomplete_bytes,
        model_type=verdict.model_type,
        num_parameters=verdict.num_parameters,
        last_used=repository.last_used,
        is_served=verdict.is_served,
        reason=verdict.reason,
    )


def list_pulled(inventory: Inventory) -> Iterator[Model]:
    """Yields the models that Python packages carried."""
    for each in inventory.pulled:
        verdict = judge_gguf(each.path) if holds_gguf(each.path) else judge(each.path)
        yield Model(
            name=each.name,
            revision="",
            size_bytes=each.size_bytes,
            incomplete_bytes=0,
            model_type=verdict.model_type,
            num_parameters=verdict.num_parameters,
            last_used=each.last_used,
            is_served=verdict.is_served and not each.stale,
            reason=each.stale or verdict.reason,
        )


def list_demos(inventory: Inventory) -> Iterator[Model]:
    for name, directory in inventory.demos.items():
        verdict, last_used = judge(directory), directory.stat().st_mtime
        size = size_behind(directory)
        yield Model(
            name,
            "",
            size,
            0,
            verdict.model_type,
            verdict.num_parameters,
            last_used,
            verdict.is_served,
            "",
        )


def _models_text(models: Sequence[Model], inventory: Inventory) -> str:
    cache = cache_directory()
    rows = [
        [
            each.name,
            each.revision[:8] or "-",
            amount(each.size_bytes),
            each.model_type or "-",
            format_count(each.num_parameters) if each.num_parameters else "-",
            "bundled" if each.name in inventory.demos else ago(each.last_used),
            _served(each),
        ]
        for each in models
    ]
    heads = ["MODEL", "REVISION", "SIZE", "TYPE", "PARAMETERS", "USED", "SERVED"]
    text = table(heads, rows, right=["SIZE", "PARAMETERS"])
    if inventory.repositories:
        return f"In the Hugging Face cache, {cache}, and bundled:\n\n{text}"
    there = "is empty" if cache.is_dir() else "does not exist"
    return (
        f"The Hugging Face cache, {cache}, {there}: `ouzel pull` fetches models. Bundled:\n\n{text}"
    )


def _served(model: Model) -> str:
    reason = (
        model.reason
        if len(model.reason) <= _MAX_REASON
        else model.reason[: _MAX_REASON - 3] + "..."
    )
    waiting = (
        f"; {amount(model.incomplete_bytes)} of unfinished downloads"
        if model.incomplete_bytes
        else ""
    )
    return ("yes" if model.is_served else f"no: {reason}") + waiting


def _kept_text(kept: Sequence[KeptModel], root: str) -> str:
    if not kept:
        return (
            f"Nothing is stored in {root} yet: the first start of a model stores its "
            "compressed weights there.\n"
        )
    rows = [
        [
            each.id,
            _what(each),
            each.model,
            amount(each.size_bytes),
            ago(each.last_used),
            _state(each),
        ]
        for each in kept
    ]
    total = sum(each.size_bytes for each in kept)
    stale = sum(each.size_bytes for each in kept if each.stale)
    text = table(["ID", "STORED", "OF", "SIZE", "USED", "STATE"], rows, right=["SIZE"])
    hint = f"; {amount(stale)} are stale: `ouzel rm --stale` removes them" if stale else ""
    return f"Stored in {root}:\n\n{text}\n{amount(total)} in all{hint}.\n"


def _what(kept: KeptModel) -> str:
    return kept.width if kept.kind == "weights" else _KINDS[kept.kind]


def _state(kept: KeptModel) -> str:
    if kept.is_in_use:
        return "in use"
    return f"stale: {kept.stale}" if kept.stale else ""


def ago(moment: float) -> str:
    """Returns the age of a moment (seconds since 1970) in days, as text."""
    days = int((time.time() - moment) / _DAY_S)
    return "today" if days < 1 else "yesterday" if days == 1 else f"{days} days ago"
