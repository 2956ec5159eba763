"""`ouzel rm` removes models of the hub's cache and files that Ouzel made of models."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ouzel.model_store.catalogue.reader import read_catalogue
from ouzel.model_store.hub_cache import gguf_models
from ouzel.model_store.inventory import Inventory
from ouzel.model_store.inventory_reader import read_inventory
from ouzel.model_store.removal import CannotRemove, Removal, carry_out, plan_removal
from ouzel.observability.progress_bar import amount
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import read_options
from ouzel.options.store_options import store_parser
from ouzel.serve.command import apply_logging
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal.one_line_parser import OneLineParser

_DESCRIPTION = """\
Removes models: a repository of the Hugging Face cache with all files that Ouzel made of it, or
such files alone. Only files of the two caches are removed, and no files in use by a server."""


def rm_parser() -> OneLineParser:
    parser = store_parser("rm", _DESCRIPTION)
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="owner/name, a short name, an id that `ouzel list` shows, a demo, or the path of a "
        "model; for the last two, only the files that Ouzel made are removed",
    )
    parser.add_argument(
        "--weights-only",
        action="store_true",
        help="keep the model, remove the files that Ouzel made of it",
    )
    parser.add_argument(
        "--stale", action="store_true", help="remove stored files that no start will use"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Removes the models and returns the exit status. Raises OuzelError."""
    values = vars(rm_parser().parse_args(arguments))
    names = values.pop("names")
    weights_only, stale = values.pop("weights_only"), values.pop("stale")
    is_confirmed = values.pop("yes")
    if "" in names:
        raise InvalidOption("NAME: must not be empty, given ''")
    if not names and not stale:
        raise InvalidOption("NAME: name at least one model, or give --stale; see `ouzel list`")
    options = apply_logging(read_options(values | {"log_level": "error"}))
    inventory = read_inventory(options.model.cache_dir)
    names = [_find_repository(name, inventory, options.model.catalogue) for name in names]
    removal = plan_removal(inventory, names, weights_only=weights_only, stale=stale)
    if not removal.repositories and not removal.kept:
        sys.stdout.write("There is nothing to remove.\n")
        return 0
    sys.stdout.write(_describe(removal))
    if not is_confirmed and not _ask():
        sys.stdout.write("Nothing was removed.\n")
        return 1
    if failures := carry_out(removal):
        raise CannotRemove(f"{len(failures)} files could not be removed: {'; '.join(failures[:8])}")
    sys.stdout.write(f"{amount(removal.num_bytes)} were freed.\n")
    return 0


def _find_repository(name: str, inventory: Inventory, catalogue: str) -> str:
    """Returns the repository of a short name if the hub's cache has it, else the name.

    Raises ModelLoadError for a faulty catalogue.
    """
    if "/" in name or Path(name).exists() or name in {each.name for each in inventory.pulled}:
        return name
    entry = read_catalogue(catalogue).get(name.lower())
    repositories = {each.repo_id: each for each in inventory.repositories}
    if entry is None or entry.repository not in repositories:
        return name
    found = repositories[entry.repository]
    ggufs = {gguf for each in found.snapshots for gguf in gguf_models(each.directory)}
    # of several GGUF models only the whole repository can be removed, which the message says
    return entry.repository_model if entry.file and len(ggufs) > 1 else entry.repository


def _describe(removal: Removal) -> str:
    lines = [
        f"{each.repo_id}, {amount(each.size_bytes)}: {each.path}" for each in removal.repositories
    ]
    lines += [f"{each.short_id}, {amount(each.size_bytes)}: {each.path}" for each in removal.kept]
    return "".join(
        harmless_line(line) + "\n" for line in [*lines, f"That frees {amount(removal.num_bytes)}."]
    )


def _ask() -> bool:
    """Asks the user whether to remove the files. Raises InvalidOption without a terminal."""
    if not sys.stdin.isatty():
        raise InvalidOption("--yes: is required without a terminal")
    sys.stdout.write("Remove it? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
