"""What a draw depends on, besides the logits."""

from typing import Protocol

from ouzel.sampling import SamplingParams


class Draw(Protocol):
    """A sequence is one, for its next token."""

    @property
    def params(self) -> SamplingParams: ...

    @property
    def index(self) -> int: ...

    @property
    def num_output_tokens(self) -> int: ...
