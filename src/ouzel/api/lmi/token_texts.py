"""Divides the text of a choice among its tokens.

The text of a choice comes without the boundaries of tokens, and may end within a token where a stop
string is hidden. A second detokenizer gives the length of each token's text. The text is divided by
these lengths, so the tokens' texts always add up to it.
"""

from collections import deque
from collections.abc import Sequence

from ouzel.api.lmi.tokens import ShownToken
from ouzel.generation import GenerationRequest, ServedModel
from ouzel.types.step_output import PositionLogprobs


class TokenTexts:
    """Divides the text of one choice among its tokens."""

    def __init__(
        self, model: ServedModel, request: GenerationRequest, *, skips_special_tokens: bool
    ) -> None:
        self._detokenizer = model.tokenizer.detokenizer(
            skip_special_tokens=skips_special_tokens, prompt_token_ids=request.prompt.token_ids
        )
        self._pieces: list[str] = []  # pieces of the text
        # the end of the text, with incomplete tokens
        self._unshared = ""
        # tokens without a text yet, with the number of their characters
        self._waiting: deque[tuple[PositionLogprobs, int]] = deque()

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def feed(self, text: str, positions: Sequence[PositionLogprobs]) -> list[ShownToken]:
        """Returns the tokens with a complete text."""
        self._take(text, positions)
        tokens: list[ShownToken] = []
        while self._waiting and self._is_complete(self._waiting[0][1]):
            tokens.append(self._pop(self._waiting[0][1]))
        return tokens

    def _is_complete(self, num_chars: int) -> bool:
        """Tells whether a token's text is complete.

        A last token without text may be part of a character.
        """
        return num_chars <= len(self._unshared) and (num_chars > 0 or len(self._waiting) > 1)

    def finish(self, hidden: Sequence[PositionLogprobs]) -> list[ShownToken]:
        """Returns the remaining tokens with the rest of the text, then the hidden tokens."""
        tokens = [self._pop(num_chars) for _, num_chars in list(self._waiting)]
        # an incomplete character at the end
        if tokens and self._unshared:
            tokens[-1] = ShownToken(tokens[-1].position, tokens[-1].text + self._unshared)
        return tokens + [ShownToken(position, "") for position in hidden]

    def _take(self, text: str, positions: Sequence[PositionLogprobs]) -> None:
        self._pieces.append(text)
        self._unshared += text
        for position in positions:
            num_chars = len(self._detokenizer.feed((position.sampled.token_id,)))
            self._waiting.append((position, num_chars))

    def _pop(self, num_chars: int) -> ShownToken:
        position, _ = self._waiting.popleft()
        text, self._unshared = self._unshared[:num_chars], self._unshared[num_chars:]
        return ShownToken(position, text)
