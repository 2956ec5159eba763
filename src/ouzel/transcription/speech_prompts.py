"""Makes the prompts of a speech model, and the rules for its transcripts.

A prompt is the text before the window behind `<|startofprev|>`, then `<|startoftranscript|>`, the
language and the task, and `<|notimestamps|>` if the model shall write none (openai-whisper,
`decoding.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.transcription.options import SpeechTask
from ouzel.types.engine_request import TranscriptRules


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPrompts:
    """Makes the prompts of one transcription, whose language is known."""

    tokens: SpeechTokens
    language: str
    task: SpeechTask
    has_timestamps: bool
    max_model_len: int

    @property
    def start(self) -> tuple[int, ...]:
        """Returns the tokens that begin a transcript in this language."""
        tokens = self.tokens
        if not tokens.is_multilingual:
            return (tokens.start,)
        return (tokens.start, tokens.languages[self.language], tokens.tasks[self.task])

    def make_context(self, earlier: Sequence[int]) -> list[int]:
        """Returns the last of the earlier tokens with their mark; it fills half of the model."""
        if not earlier or self.tokens.previous is None:
            return []
        num_tokens = self.max_model_len // 2 - 1
        return [self.tokens.previous, *earlier[-num_tokens:]]

    def make_prompt(self, earlier: Sequence[int]) -> list[int]:
        end = () if self.has_timestamps else (self.tokens.no_timestamps,)
        return [*self.make_context(earlier), *self.start, *end]

    def make_start_prompt(self, earlier: Sequence[int]) -> list[int]:
        """Returns the prompt up to the token after which the model tells that nobody speaks."""
        return [*self.make_context(earlier), self.tokens.start]

    def make_aligned(self, text_ids: Sequence[int]) -> list[int]:
        """Returns the prompt for the alignment of a text."""
        return [*self.start, self.tokens.no_timestamps, *text_ids, self.tokens.end]

    def count_new_tokens(self, num_prompt_tokens: int) -> int:
        """Returns the maximum of tokens after a prompt."""
        return max(min(self.max_model_len // 2, self.max_model_len - num_prompt_tokens), 1)

    def make_rules(self) -> TranscriptRules:
        tokens, times = self.tokens, self.has_timestamps
        return TranscriptRules(
            end_token_id=tokens.end,
            suppressed=(*tokens.suppressed, tokens.no_timestamps),
            suppressed_first=tokens.suppressed_first,
            first_timestamp=tokens.first_timestamp if times else None,
            max_first_timestamp=tokens.max_first_timestamp if times else None,
        )
