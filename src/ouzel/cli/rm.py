"""`ouzel rm` removes models of the hub's cache, and what is kept of models, when it has said what that frees."""

import sys
from collections.abc import Sequence

from ouzel.cli.inventory import read_inventory
from ouzel.model_store.removal import CannotRemove, Removal, carry_out, plan_removal
from ouzel.observability.progress_bar import amount
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import read_options
from ouzel.options.store_options import store_parser
from ouzel.serve.command import apply_logging
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal.one_line_parser import OneLineParser

_DESCRIPTION = """\
Removes models: a repository of the Hugging Face cache with all that is kept of it, or what is kept alone. Nothing
outside the two caches is removed, nor what a running server holds."""


def rm_parser() -> OneLineParser:
    parser = store_parser("rm", _DESCRIPTION)
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="owner/name, an id that `ouzel list` shows, a demo, or the path of a model: of the last two, what is kept",
    )
    parser.add_argument(
        "--weights-only", action="store_true", help="leave the model, remove what is kept of it"
    )
    parser.add_argument(
        "--stale", action="store_true", help="remove what is kept and no start will use"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Raises OuzelError."""
    values = vars(rm_parser().parse_args(arguments))
    names, weights_only, stale, is_agreed = (
        values.pop(name) for name in ("names", "weights_only", "stale", "yes")
    )
    if "" in names:
        raise InvalidOption("NAME: must name something, given ''")
    if not names and not stale:
        raise InvalidOption("NAME: at least one is needed, or --stale; `ouzel list` shows them")
    options = apply_logging(read_options(values | {"log_level": "error"}))
    inventory = read_inventory(options.model.cache_dir)
    removal = plan_removal(inventory, names, weights_only=weights_only, stale=stale)
    if not removal.repositories and not removal.kept:
        sys.stdout.write("There is nothing to remove.\n")
        return 0
    sys.stdout.write(_named(removal))
    if not is_agreed and not _is_agreed():
        sys.stdout.write("Nothing was removed.\n")
        return 1
    if failures := carry_out(removal):
        raise CannotRemove(f"{len(failures)} could not be removed: {'; '.join(failures[:8])}")
    sys.stdout.write(f"{amount(removal.num_bytes)} were freed.\n")
    return 0


def _named(removal: Removal) -> str:
    lines = [
        f"{each.repo_id}, {amount(each.size_bytes)}: {each.path}" for each in removal.repositories
    ]
    lines += [f"{each.short_id}, {amount(each.size_bytes)}: {each.path}" for each in removal.kept]
    return "".join(
        harmless_line(line) + "\n" for line in [*lines, f"That frees {amount(removal.num_bytes)}."]
    )


def _is_agreed() -> bool:
    """Raises InvalidOption where nobody can be asked."""
    if not sys.stdin.isatty():
        raise InvalidOption("--yes: is needed where nobody can be asked")
    sys.stdout.write("Remove it? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
