"""Prompts may be cut to a number of tokens rather than refused (vLLM's `truncate_prompt_tokens`, `truncation_side`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Truncation:
    max_tokens: int  # at least 1
    keeps_end: bool = True  # else the beginning

    def of_text(self, text: str, max_chars: int) -> str:
        """Cuts where more characters than this cannot matter, so that megabytes are not tokenised for a few tokens."""
        return text[-max_chars:] if self.keeps_end else text[:max_chars]

    def of_token_ids(self, token_ids: list[int], num_leading: int) -> list[int]:
        """Cuts behind the first `num_leading`, which the tokenizer puts before every text, or at the end."""
        if len(token_ids) <= self.max_tokens:
            return token_ids
        if not self.keeps_end:
            return token_ids[: self.max_tokens]
        num_leading = min(num_leading, self.max_tokens)
        return token_ids[:num_leading] + token_ids[len(token_ids) - self.max_tokens + num_leading :]
