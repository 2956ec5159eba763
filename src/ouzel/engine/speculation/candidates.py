"""Describes tokens that may be proposed, and proposals whose result is still open."""

import msgspec

from ouzel.engine.speculation.rules.prompt_lookup import LookupProposal
from ouzel.engine.state.sequence import Sequence


class Candidate(msgspec.Struct, frozen=True):
    """Tokens that may be proposed for a sequence in the present step."""

    sequence: Sequence
    token_ids: tuple[int, ...]  # empty for a draft, which is made later
    chances: tuple[float, ...]  # chance of each token that it and all before it are accepted
    lookup: LookupProposal | None = None
    is_drafted: bool = False


class OpenProposal(msgspec.Struct, frozen=True):
    """A candidate of the present step, to be compared with the sequence's next tokens."""

    candidate: Candidate
    num_proposed: int  # 0: only watched
    num_tokens: int  # tokens of the sequence before the step
    num_accepted: int  # accepted tokens of the sequence before the step

    @property
    def would_be_accepted(self) -> bool:
        """Tells whether the first token of a candidate that was only watched came next."""
        return self.candidate.sequence.token_ids[self.num_tokens] == self.candidate.token_ids[0]


def open_proposal(candidate: Candidate, num_proposed: int) -> OpenProposal:
    """Records the state of the candidate's sequence before the step."""
    sequence = candidate.sequence
    return OpenProposal(candidate, num_proposed, sequence.num_tokens, sequence.num_accepted_tokens)
