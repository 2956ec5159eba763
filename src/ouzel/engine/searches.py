"""Advances each beam search by one step of its own in every engine step."""

import logging
from collections.abc import Mapping
from operator import attrgetter

from ouzel.engine.beam import BeamSearch
from ouzel.engine.grammars.session import GrammarBroken
from ouzel.engine.open_requests import OpenRequests
from ouzel.engine.outputs import make_winner_output
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
    """Advances the searches on the logits of their beams (`rows`, overwritten).

    Returns the blocks to copy, as (source, destination). Searches advance in `Sequence.order`: a
    search that needs blocks of another search comes before that search.
    """
    copies: list[tuple[int, int]] = []
    for request_id in dict.fromkeys(
        beam.request.request_id for beam in sorted(rows, key=attrgetter("order"))
    ):
        search = requests.searches[request_id]
        if search.beams[0] not in rows:
            continue  # preempted earlier in this step
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
    """Ends each choice with one finished beam, the best for index 0."""
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
        requests.outputs.append(make_winner_output(choice, winner, search.timing))
        requests.retire(choice)
