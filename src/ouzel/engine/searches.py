"""In each step of the engine a beam search takes one of its own; it gives its winners when it is over."""

import logging
from collections.abc import Mapping
from operator import attrgetter

from ouzel.engine.beam import BeamSearch
from ouzel.engine.grammars.session import GrammarBroken
from ouzel.engine.open_requests import OpenRequests
from ouzel.engine.outputs import winner_output_of
from ouzel.engine.sampling.constraints import Constraints
from ouzel.engine.scheduling.scheduler import Scheduler
from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.errors import STOPS
from ouzel.types.step_output import FinishReason

logger = logging.getLogger(__name__)


def advance_searches(
    rows: Mapping[Sequence, Row],
    requests: OpenRequests,
    scheduler: Scheduler,
    constraints: Constraints,
) -> list[tuple[int, int]]:
    """Returns the blocks to copy, as (source, destination). `rows` are the logits of each beam, and overwritten.

    Searches go in `Sequence.order`, so that a search which needs another one's blocks comes before it.
    """
    copies: list[tuple[int, int]] = []
    for request_id in dict.fromkeys(
        beam.request.request_id for beam in sorted(rows, key=attrgetter("order"))
    ):
        search = requests.searches[request_id]
        if search.beams[0] not in rows:
            continue  # preempted a moment ago
        try:
            copies += search.advance(rows, scheduler, constraints)
        except GrammarBroken as error:
            constraints.forget(search.request)
            requests.end_broken(requests.choices(request_id), error)
        except STOPS:
            raise
        except BaseException as error:  # one request's fault must not end its batch neighbours
            logger.exception("beam search failed for request %s", request_id)
            for choice in requests.choices(request_id):
                requests.end(choice, FinishReason.ERROR, f"beam search failed: {error}")
        else:
            if search.is_over:
                _give_winners(search, requests)
    return copies


def _give_winners(search: BeamSearch, requests: OpenRequests) -> None:
    """Gives each choice its own: index 0 gets the best."""
    winners = search.winners()
    for choice in requests.choices(search.request.request_id):
        if choice.index >= len(winners):
            requests.end(
                choice, FinishReason.REFUSED, f"the beam search found {len(winners)} outputs only"
            )
            continue
        winner = winners[choice.index]
        choice.token_ids += winner.token_ids
        choice.num_cached_tokens = search.num_cached_tokens
        choice.stop_token_id = winner.token_ids[-1] if winner.reason is FinishReason.STOP else None
        choice.finish(winner.reason)
        requests.outputs.append(winner_output_of(choice, winner, search.timing))
        requests.retire(choice)
