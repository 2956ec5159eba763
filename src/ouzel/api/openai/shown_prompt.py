"""The parts of a prompt that completions show: text, logprobs, ids and scores."""

from collections.abc import Sequence
from functools import cached_property

from ouzel.generation import Prompt, ServedModel
from ouzel.types.step_output import PositionLogprobs
from ouzel.wire.logprobs import (
    CompletionLogprobs,
    PromptLogprobs,
    TokenText,
    echoed_logprobs,
    keep_top,
    prompt_logprobs,
)


class ShownPrompt:
    """The shown parts of a prompt. All choices share them, so each is written once."""

    def __init__(
        self,
        prompt: Prompt,
        model: ServedModel,
        text_of: TokenText,
        *,
        # alternatives that the request demands, in the echo and in prompt_logprobs
        num_logprobs: int | None,
        num_prompt_logprobs: int | None,
    ) -> None:
        self.token_ids = prompt.token_ids
        # scores of every token but the first; known before the first choice
        self.scores: Sequence[PositionLogprobs] = ()
        self._prompt = prompt
        self._model = model
        self._text_of = text_of
        self._num_logprobs = num_logprobs
        self._num_prompt_logprobs = num_prompt_logprobs

    @cached_property
    def text(self) -> str:
        """Returns the prompt's text up to the last whole character.

        The choice completes a partial one.
        """
        tokenizer, prompt = self._model.tokenizer, self._prompt
        unfinished = tokenizer.detokenizer(
            skip_special_tokens=False, prompt_token_ids=prompt.token_ids
        ).finish()
        return prompt.text.removesuffix(unfinished)

    @cached_property
    def logprobs(self) -> tuple[CompletionLogprobs, int]:
        """Returns the logprobs of the prompt, and the number of characters that have begun."""
        scores = keep_top(self.scores, self._num_logprobs or 0)
        return echoed_logprobs(self._prompt, scores, self._model, self._text_of)

    @cached_property
    def prompt_logprobs(self) -> PromptLogprobs:
        return prompt_logprobs(keep_top(self.scores, self._num_prompt_logprobs or 0), self._model)
