"""Tools of types that this server does not know are left out or refused, as `--unknown-tools` has it.

Servers run such tools themselves (a search, an interpreter); this one runs none.
"""

import logging
from collections.abc import Sequence

from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import shown

logger = logging.getLogger(__name__)

_RUNS_NONE = "this server runs no tools of its own"


def leave_out(unknown: Sequence[tuple[str, str]], *, known: Sequence[str], has_others: bool, refuses: bool) -> None:
    """Logs the `unknown` tools, of each where its type stands in the request and the type; `known` are types.

    Raises InvalidRequest where the server `refuses` them, and where nothing is left without them.
    """
    if not unknown:
        return
    if refuses or not has_others:
        place, kind = unknown[0]
        raise InvalidRequest(
            f"must be one of {', '.join(map(shown, known))}, given {shown(kind)}: {_RUNS_NONE}", field=place
        )
    kinds = ", ".join(dict.fromkeys(repr(kind[:60]) for _, kind in unknown[:20]))
    logger.info("left out tools of types that are unknown here: %s", kinds)
