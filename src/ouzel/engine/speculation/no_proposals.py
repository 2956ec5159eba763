"""Replaces `Proposals` in an engine without speculation, so that steps need no special case."""

from ouzel.engine.scheduling.scheduler import Scheduled


class NoProposals:
    num_drafts = 0
    num_draft_tokens = 0
    num_accepted_tokens = 0

    def measure(self) -> bool:
        return False

    def add_to(self, scheduled: list[Scheduled]) -> None:
        pass

    def time_step(self, scheduled: list[Scheduled], seconds: float) -> None:
        pass

    def note(self, scheduled: list[Scheduled]) -> None:
        pass

    def close(self) -> None:
        pass
